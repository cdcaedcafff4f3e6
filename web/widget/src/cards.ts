// Product cards. The UI specification is validated field by field, because it comes over the network.

import { h, webAddress } from "./dom.ts";
import { fields, textOf } from "./settings.ts";

const PRODUCTS_MAX = 24;

/** Returns the product grid of a UI specification, if it is one. */
export function productGrid(spec: unknown, label: string): HTMLElement | null {
  const { type, data } = fields(spec);
  if (type !== "product-grid" || !Array.isArray(data) || data.length === 0) return null;
  const cards = data.slice(0, PRODUCTS_MAX).map((product) => h("li", {}, card(fields(product))));
  // Some screen readers do not announce lists without markers unless they have the role. Cards without links are
  // reached by scrolling, so that the list takes the focus.
  return h("ul", { class: "cards", role: "list", "aria-label": label, tabindex: 0 }, ...cards);
}

function card(product: Record<string, unknown>): HTMLElement {
  const [title, price] = [textOf(product.title), textOf(product.price)];
  const [image, url] = [webAddress(textOf(product.image)), webAddress(textOf(product.url))];
  const picture = h("span", { class: "picture", "aria-hidden": "true" }, initial(title));
  if (image) picture.append(imageElement(image));
  const content = [picture, h("span", { class: "title", dir: "auto" }, title), price && h("span", { class: "price" }, price)];
  if (!url) return h("div", { class: "card" }, ...content);
  return h("a", { class: "card", href: url, target: "_blank", rel: "noopener noreferrer" }, ...content);
}

/** Images come from the organization's catalog; the initial stays visible if one fails to load. */
function imageElement(address: string): HTMLImageElement {
  const image = h("img", { alt: "", loading: "lazy", decoding: "async", referrerpolicy: "no-referrer" });
  image.onerror = () => image.remove();
  image.src = address;
  return image;
}

export function initial(name: string): string {
  return Array.from(name.trim())[0]?.toUpperCase() ?? "?";
}
