// Builds DOM nodes from the Markdown tree, with a fixed list of elements and attributes.

import { type Block, parse } from "./blocks.ts";
import type { Inline } from "./inline.ts";
import { parseLinkAddress, matchesAddress } from "./links.ts";

interface RenderedBlock {
  source: string;
  element: Element;
}

const shown = new WeakMap<Element, RenderedBlock[]>();

/** Renders a text into `container`. While it grows, only changed blocks are built again. */
export function render(container: Element, text: string): void {
  const before = shown.get(container) ?? [];
  const after = parse(text).map(({ source, block }, at) => {
    const old = before[at];
    // Restores blocks that other scripts removed from the container.
    return old?.source === source && old.element.parentNode === container ? old : { source, element: blockElement(block) };
  });
  const kept = after.findIndex((entry, at) => entry !== before[at]);
  if (kept >= 0 || after.length < before.length) {
    const from = kept < 0 ? after.length : kept;
    for (const { element } of before.slice(from)) element.remove();
    container.append(...after.slice(from).map(({ element }) => element));
  }
  shown.set(container, after);
}

function element(name: string, children: Node[] = [], className = ""): HTMLElement {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function blockElement(block: Block): HTMLElement {
  switch (block.kind) {
    case "paragraph":
      return element("p", inlineNodes(block.content));
    case "heading":
      // One level below the title of the panel, so that the outline of the page stays intact.
      return element("h3", inlineNodes(block.content), `h${block.level}`);
    case "code":
      return scrolling(element("pre", [element("code", [document.createTextNode(block.text)])]));
    case "quote":
      return element("blockquote", block.blocks.map(blockElement));
    case "list":
      return listElement(block);
    case "table":
      return tableElement(block);
    case "rule":
      return element("hr");
  }
}

function listElement(block: Block & { kind: "list" }): HTMLElement {
  const list = element(block.start === null ? "ul" : "ol");
  if (block.start !== null) (list as HTMLOListElement).start = block.start;
  for (const item of block.items) {
    // Most items are one line; a paragraph would only add space.
    const only = item.length === 1 && item[0]?.kind === "paragraph" ? item[0] : null;
    list.append(element("li", only ? inlineNodes(only.content) : item.map(blockElement)));
  }
  return list;
}

function tableElement(block: Block & { kind: "table" }): HTMLElement {
  const row = (cells: Inline[][], name: string) =>
    element("tr", cells.map((cell, column) => element(name, inlineNodes(cell), block.align[column] ?? "")));
  const table = element("table", [
    element("thead", [row(block.head, "th")]),
    element("tbody", block.rows.map((cells) => row(cells, "td"))),
  ]);
  return scrolling(element("div", [table], "scroll"));
}

/** Makes horizontally scrolling content reachable with the keyboard. */
function scrolling(made: HTMLElement): HTMLElement {
  made.tabIndex = 0;
  return made;
}

function inlineNodes(nodes: Inline[]): Node[] {
  return nodes.flatMap(inlineNode);
}

function inlineNode(node: Inline): Node[] {
  switch (node.kind) {
    case "text":
      return [document.createTextNode(node.text)];
    case "break":
      return [document.createElement("br")];
    case "code":
      return [element("code", [document.createTextNode(node.text)])];
    case "strong":
      return [element("strong", inlineNodes(node.content))];
    case "emphasis":
      return [element("em", inlineNodes(node.content))];
    case "struck":
      return [element("s", inlineNodes(node.content))];
    case "link":
      return linkNodes(node.address, inlineNodes(node.content));
  }
}

function linkNodes(address: string, content: Node[]): Node[] {
  const url = parseLinkAddress(address);
  if (!url) return content;
  const hasText = content.some((node) => node.textContent?.trim());
  const link = element("a", hasText ? content : [document.createTextNode(url.href)]) as HTMLAnchorElement;
  link.href = url.href;
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  // Shows the target of a link, because its text comes from the model.
  if (!url.host || matchesAddress(link.textContent ?? "", address, url)) return [link];
  const host = element("span", [document.createTextNode(` (${url.host})`)], "host");
  // Isolated, so that a text with another writing direction does not affect it.
  host.dir = "ltr";
  return [link, host];
}
