// Creates elements without parsing HTML: texts become text nodes, and only named attributes are set.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined>;

/** Creates an element; `true` sets an empty attribute, `false` and undefined omit it. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  set(element, attributes);
  element.append(...children.filter((child): child is Node | string => !!child || child === ""));
  return element;
}

export function set(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Creates a link that opens a new tab; null unless the address is one of the web. */
export function webLink(address: string, text: string): HTMLAnchorElement | null {
  const href = webAddress(address);
  return href === null ? null : h("a", { href, target: "_blank", rel: "noopener noreferrer" }, text);
}

export function webAddress(text: string): string | null {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}

/** Creates an icon of 24 by 24 units in the color of the surrounding text. */
export function icon(path: string): SVGSVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  set(svg, { viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" });
  const line = document.createElementNS(space, "path");
  set(line, { d: path });
  svg.append(line);
  return svg;
}

export const icons = {
  chat: "M12 3c5.2 0 9 3.4 9 7.8s-3.8 7.8-9 7.8c-.9 0-1.8-.1-2.6-.3L5 20.7c-.6.3-1.2-.2-1.1-.8l.7-3.3C3.6 15.2 3 13.1 3 10.8 3 6.4 6.8 3 12 3z",
  close: "M6 6l12 12M18 6L6 18",
  anew: "M4.5 12a7.5 7.5 0 1 0 2.5-5.6M7 2.8v3.9h3.9",
  send: "M12 19V5M5.5 11.5L12 5l6.5 6.5",
  stop: "M8 8h8v8H8z",
  down: "M12 5v14M5.5 12.5L12 19l6.5-6.5",
  star: "M12 3.6l2.6 5.3 5.8.8-4.2 4.1 1 5.8-5.2-2.7-5.2 2.7 1-5.8-4.2-4.1 5.8-.8z",
};
