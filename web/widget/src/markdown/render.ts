// Builds DOM nodes from the tree, from a fixed list of elements and attributes.

import { type Block, parse } from "./blocks.ts";
import type { Inline } from "./inline.ts";
import { followable, tellsItsHost } from "./links.ts";

interface Shown {
  source: string;
  element: Element;
}

const shown = new WeakMap<Element, Shown[]>();

/** Shows a text in `container`. While it grows, only the blocks that have changed are built again. */
export function render(container: Element, text: string): void {
  const before = shown.get(container) ?? [];
  const after = parse(text).map(({ source, block }, at) => {
    const old = before[at];
    // What somebody else took out of the container has to be put there again.
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
      // One level below the panel's own title, whatever the model says: the outline stays the page's.
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
    // The usual item is one line, and a paragraph in it would only add space.
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

/** What scrolls sideways must be reachable with the keyboard. */
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
  const url = followable(address);
  if (!url) return content;
  const hasText = content.some((node) => node.textContent?.trim());
  const link = element("a", hasText ? content : [document.createTextNode(url.href)]) as HTMLAnchorElement;
  link.href = url.href;
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  // Where a link leads is shown, because its text is the model's word.
  if (!url.host || tellsItsHost(link.textContent ?? "", address, url)) return [link];
  const host = element("span", [document.createTextNode(` (${url.host})`)], "host");
  // A text that turns the direction of writing must not turn this one too.
  host.dir = "ltr";
  return [link, host];
}
