// Preview of a file: a thumbnail of an image, or the name of its type.

import { h } from "../dom.ts";
import { isImage, typeLabel } from "./types.ts";

/** Returns a preview that shows the type until an image is drawn. */
export function createPreview(type: string): HTMLElement {
  return h("span", { class: "preview", "aria-hidden": "true" }, typeLabel(type).slice(0, 5));
}

/** Draws an image that covers the preview. A canvas needs no permission of the page's content security policy,
 * and runs nothing that an image contains. */
export async function drawImage(preview: HTMLElement, file: Blob, type: string, width: number, height: number): Promise<void> {
  if (!isImage(type)) return;
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const canvas = h("canvas", { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  try {
    const image = await createImageBitmap(file);
    const scale = Math.max(canvas.width / image.width, canvas.height / image.height);
    const [w, h] = [image.width * scale, image.height * scale];
    const context = canvas.getContext("2d");
    if (context) context.imageSmoothingQuality = "high";
    context?.drawImage(image, (canvas.width - w) / 2, (canvas.height - h) / 2, w, h);
    image.close();
    preview.replaceChildren(canvas);
  } catch {
    // The type stays visible.
  }
}
