// Files that the visitor has chosen for the next message.

import type { FileTray } from "../composer.ts";
import type { Attachment } from "../conversation.ts";
import { h, icon, icons } from "../dom.ts";
import { fill } from "../texts.ts";
import { Chip, type ChipActions, tooLarge, wrongType } from "./chip.ts";
import type { FileTexts } from "./texts.ts";
import { FILES_MAX, type Limits, typeOf } from "./types.ts";
import { type FilesHost, upload } from "./uploads.ts";

export class Tray implements FileTray {
  readonly element: HTMLElement;
  limits: Limits | null = null;
  /** Files that were uploaded on this page, by id. */
  readonly uploaded = new Map<string, File>();
  private chips: Chip[] = [];
  private readonly list: HTMLElement;
  private readonly notice: HTMLElement;
  private readonly mistakes = h("div", { role: "alert" });
  private readonly actions: ChipActions;

  constructor(
    private readonly texts: FileTexts,
    private readonly code: string,
    host: FilesHost,
    /** A file was added, uploaded or removed. */
    private readonly changed: () => void,
    /** Moves the focus from the last removed file. */
    private readonly leave: () => void,
  ) {
    const dismiss = h("button", { type: "button", class: "tool", "aria-label": texts.dismiss, title: texts.dismiss }, icon(icons.close));
    dismiss.onclick = () => {
      this.warn([]);
      leave();
    };
    this.notice = h("div", { class: "mistakes", hidden: true }, this.mistakes, dismiss);
    this.list = h("ul", { class: "chips", role: "list", "aria-label": texts.list, hidden: true });
    this.element = h("div", { class: "tray" }, this.list, this.notice);
    this.actions = {
      upload: (file, onProgress, signal) => upload(host, file, onProgress, signal),
      uploaded: ({ file, attachment }) => {
        if (!file || !attachment) return;
        this.uploaded.set(attachment.fileId, file);
        host.announce(fill(texts.uploaded, { name: file.name }));
      },
      changed,
      remove: (chip) => this.remove(chip),
      limits: () => this.limits,
    };
  }

  get isFull(): boolean {
    return this.chips.length >= FILES_MAX;
  }

  get state(): FileTray["state"] {
    const states = this.chips.map(({ state }) => state);
    if (states.includes("failed")) return "failed";
    if (states.includes("uploading")) return "uploading";
    return states.length > 0 ? "ready" : "empty";
  }

  get reason(): string {
    return this.state === "failed" ? this.texts.blocked : this.texts.wait;
  }

  /** Uploads the files that the agent accepts, and shows why it does not accept the others. */
  add(files: File[]): void {
    const mistakes: Node[] = [];
    let isOver = false;
    for (const file of files) {
      const mistake = this.mistake(file);
      if (mistake) mistakes.push(h("p", {}, h("bdi", {}, file.name), `: ${mistake}`));
      else if (this.isFull) isOver = true;
      else void this.append(file, null).start();
    }
    // More lines than files of a message would hide the message field.
    this.warn([...mistakes.slice(0, FILES_MAX), ...(isOver ? [this.tooMany()] : [])]);
    this.element.scrollTop = this.element.scrollHeight;
  }

  warnFull(): void {
    this.warn([this.tooMany()]);
  }

  take(): Attachment[] {
    const taken = this.chips.flatMap(({ attachment }) => attachment ?? []);
    this.clear();
    return taken;
  }

  /** Cancels uploads and removes all files. */
  clear(): void {
    const hasFocus = this.element.contains((this.element.getRootNode() as ShadowRoot).activeElement);
    for (const chip of this.chips.splice(0)) {
      chip.cancel();
      chip.element.remove();
    }
    this.warn([]);
    this.update();
    if (hasFocus) this.leave();
  }

  /** Shows files of a message that was not sent, some of which the service no longer has. */
  takeBack(attachments: Attachment[], param: string): void {
    const at = /\[(\d+)\]/.exec(param)?.[1];
    attachments.forEach((attachment, index) => {
      const chip = this.append(this.uploaded.get(attachment.fileId) ?? null, attachment);
      if (at === undefined || Number(at) === index) chip.lose();
    });
  }

  private tooMany(): Node {
    return h("p", {}, fill(this.texts.tooMany, { n: FILES_MAX }));
  }

  private mistake(file: File): string {
    const { texts, code, limits } = this;
    if (!limits?.types.includes(typeOf(file))) return wrongType(texts, limits);
    if (file.size === 0) return texts.empty;
    return file.size > limits.maxBytes ? tooLarge(texts, limits.maxBytes, code) : "";
  }

  private append(file: File | null, attachment: Attachment | null): Chip {
    const chip = new Chip(this.texts, this.code, this.actions, file, attachment);
    this.chips.push(chip);
    this.list.append(chip.element);
    this.update();
    return chip;
  }

  private remove(chip: Chip): void {
    const at = this.chips.indexOf(chip);
    if (at < 0) return;
    chip.cancel();
    this.chips.splice(at, 1);
    chip.element.remove();
    const next = this.chips[at] ?? this.chips[at - 1];
    if (next) next.remove.focus();
    else this.leave();
    this.warn([]);
    this.update();
  }

  private warn(mistakes: Node[]): void {
    this.notice.hidden = mistakes.length === 0;
    this.mistakes.replaceChildren(...mistakes);
  }

  private update(): void {
    this.list.hidden = this.chips.length === 0;
    this.changed();
  }
}
