// Files of messages in the conversation.

import type { Attachment } from "../conversation.ts";
import { h, icon } from "../dom.ts";
import { fields } from "../settings.ts";
import { fill } from "../texts.ts";
import { createPreview, drawImage } from "./preview.ts";
import type { FileTexts } from "./texts.ts";
import { formatBytes, isImage } from "./types.ts";
import { download, type FilesHost, save } from "./uploads.ts";

const DOWNLOAD_PATH = "M12 4v11M7 10.5l5 5 5-5M5 20h14";
const WIDTH_PX = 264;
const HEIGHT_PX = 150;

export class AttachmentLists {
  /** Images are fetched once they are visible. */
  private readonly observer = new IntersectionObserver((changes) => {
    for (const { isIntersecting, target } of changes) {
      if (!isIntersecting) continue;
      this.observer.unobserve(target);
      this.waiting.get(target)?.();
      this.waiting.delete(target);
    }
  });
  private readonly waiting = new Map<Element, () => void>();

  constructor(
    private readonly texts: FileTexts,
    private readonly code: string,
    private readonly host: FilesHost,
    /** Files that need no download, by id. */
    private readonly local: ReadonlyMap<string, File>,
  ) {}

  draw(attachments: Attachment[]): HTMLElement {
    const images = attachments.filter(({ mimeType }) => isImage(mimeType));
    return h("ul", { class: images.length > 1 ? "files several" : "files", role: "list", "aria-label": this.texts.list }, ...attachments.map((attachment) => this.item(attachment)));
  }

  private item(attachment: Attachment): HTMLElement {
    const { texts } = this;
    const { name, mimeType, bytes } = attachment;
    const label = fill(texts.download, { name });
    const button = h("button", { type: "button", class: "tool", "aria-label": label, title: label }, icon(DOWNLOAD_PATH));
    const error = h("span", { class: "error", role: "alert" });
    const preview = createPreview(mimeType);
    const about = h("span", { class: "about" }, h("span", { class: "name", dir: "auto", title: name }, name), h("span", { class: "size" }, formatBytes(bytes, this.code)), error);
    const hasImage = isImage(mimeType);
    const item = h("li", { class: hasImage ? "file image" : "file" }, preview, about, button);
    const fail = (failure: unknown) => {
      const isGone = fields(failure).status === 404;
      error.textContent = isGone ? texts.gone : texts.downloadFailed;
      button.hidden = isGone;
    };
    let isRunning = false;
    button.onclick = async () => {
      if (isRunning) return;
      isRunning = true;
      error.textContent = "";
      await this.read(attachment).then((file) => save(file, name), fail);
      isRunning = false;
    };
    if (hasImage) {
      this.waiting.set(item, () => {
        void this.read(attachment).then((file) => drawImage(preview, file, mimeType, WIDTH_PX, HEIGHT_PX), (failure: unknown) => {
          // Other failures show once the visitor downloads the file.
          if (fields(failure).status === 404) fail(failure);
        });
      });
      this.observer.observe(item);
    }
    return item;
  }

  private read({ fileId }: Attachment): Promise<Blob> {
    const known = this.local.get(fileId);
    return known ? Promise.resolve(known) : download(this.host, fileId);
  }
}
