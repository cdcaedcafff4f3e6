// Files in the conversation: choosing, dropping and pasting them, and showing those of messages. Loaded only for
// agents that accept files, and for conversations that have some.

import type { Composer } from "../composer.ts";
import type { Attachment } from "../conversation.ts";
import { h, icon, set } from "../dom.ts";
import type { Log } from "../log.ts";
import { fill, type Language } from "../texts.ts";
import { AttachmentLists } from "./attachments.ts";
import style from "./files.css";
import { type FileTexts, textsOf } from "./texts.ts";
import { Tray } from "./tray.ts";
import { acceptedBy, formatBytes, parseLimits } from "./types.ts";
import type { FilesHost } from "./uploads.ts";

export { style };
export type { FilesHost };

const CLIP_PATH = "M20 11.5l-8.2 8.2a5.2 5.2 0 0 1-7.4-7.4l8.6-8.5a3.5 3.5 0 0 1 4.9 4.9l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4l7.8-7.8";
const CAMERA_PATH = "M4 8h3.2l1.6-2.5h6.4L16.8 8H20v11H4zM12 16.5a3.3 3.3 0 1 0 0-6.6 3.3 3.3 0 0 0 0 6.6z";

/** Parts of the window that show files. */
interface Place {
  element: HTMLElement;
  log: Log;
  composer: Composer;
}

export class Files {
  private readonly tray: Tray;
  private readonly texts: FileTexts;
  private readonly input = h("input", { type: "file", class: "chooser", multiple: true, hidden: true, tabindex: -1 });
  private readonly camera = h("input", { type: "file", accept: "image/*", capture: "environment", hidden: true, tabindex: -1 });
  private readonly clipButton: HTMLButtonElement;
  private readonly cameraButton: HTMLButtonElement;
  private readonly buttons: HTMLElement;
  private readonly zone = h("div", { class: "drop", "aria-hidden": "true", hidden: true });

  constructor(
    private readonly place: Place,
    private readonly language: Language,
    host: FilesHost,
  ) {
    const { element, log, composer } = place;
    const texts = textsOf(language.code);
    this.texts = texts;
    const button = (label: string, path: string, input: HTMLInputElement) => {
      const chooser = h("button", { type: "button", class: "attach", "aria-label": label, title: label }, icon(path));
      chooser.onclick = () => (this.tray.isFull ? this.tray.warnFull() : input.click());
      input.onchange = () => {
        this.take(input.files);
        // The same file can be chosen again.
        input.value = "";
      };
      return chooser;
    };
    this.clipButton = button(texts.attach, CLIP_PATH, this.input);
    this.cameraButton = button(texts.camera, CAMERA_PATH, this.camera);
    this.cameraButton.classList.add("camera");
    this.buttons = h("div", { class: "attaching" }, this.clipButton, this.cameraButton, this.input, this.camera);
    this.tray = new Tray(texts, language.code, host, () => composer.filesChanged(), () => this.focus());
    composer.attach(this.tray, this.tray.element, this.buttons);
    element.append(this.zone);
    this.listen();
    const lists = new AttachmentLists(texts, language.code, host, this.tray.uploaded);
    log.showFiles((attachments) => lists.draw(attachments));
  }

  /** Applies the limits of the agent; without any, no more files can be chosen. */
  configure(settings: unknown): void {
    const limits = parseLimits(settings);
    this.tray.limits = limits;
    this.buttons.hidden = !limits;
    if (!limits) return this.tray.clear();
    set(this.input, { accept: acceptedBy(limits.types) });
    this.cameraButton.hidden = !limits.types.includes("image/jpeg");
    const limit = fill(this.texts.limit, { limit: formatBytes(limits.maxBytes, this.language.code) });
    this.zone.replaceChildren(h("div", {}, icon(CLIP_PATH), h("strong", {}, this.texts.drop), h("span", {}, limit)));
  }

  forget(): void {
    this.tray.clear();
  }

  takeBack(attachments: Attachment[], param: string): void {
    this.tray.takeBack(attachments, param);
  }

  private get isReady(): boolean {
    return this.tray.limits !== null && !this.place.composer.element.hidden;
  }

  private listen(): void {
    const { element, composer } = this.place;
    const dragged = (event: DragEvent) => {
      if (!this.isReady || !event.dataTransfer?.types.includes("Files")) return false;
      event.preventDefault();
      return true;
    };
    element.ondragenter = (event) => {
      if (dragged(event)) this.zone.hidden = false;
    };
    element.ondragover = (event) => {
      if (dragged(event) && event.dataTransfer) event.dataTransfer.dropEffect = "copy";
    };
    this.zone.ondragleave = () => {
      this.zone.hidden = true;
    };
    element.ondrop = (event) => {
      this.zone.hidden = true;
      if (dragged(event)) this.take(event.dataTransfer?.files);
    };
    composer.input.onpaste = (event) => {
      const data = event.clipboardData;
      // Office programs copy a picture of their text too.
      const isText = data?.types.includes("text/plain") && data.types.includes("text/html");
      if (!this.isReady || isText || !data?.files.length) return;
      event.preventDefault();
      this.take(data.files);
    };
  }

  private take(files: FileList | null | undefined): void {
    if (!files?.length) return;
    this.tray.add([...files]);
    this.focus();
  }

  /** Focuses the field, unless that would open the keyboard of a phone. */
  private focus(): void {
    if (matchMedia("(pointer: coarse)").matches) this.clipButton.focus();
    else this.place.composer.input.focus();
  }
}
