// A chosen file above the message field: its upload, progress and errors.

import type { Attachment } from "../conversation.ts";
import { h, icon, icons, set } from "../dom.ts";
import { fields } from "../settings.ts";
import { fill } from "../texts.ts";
import { createPreview, drawImage } from "./preview.ts";
import type { FileTexts } from "./texts.ts";
import { formatBytes, type Limits, typeLabel, typeOf } from "./types.ts";

export interface ChipActions {
  upload(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<Attachment>;
  uploaded(chip: Chip): void;
  changed(): void;
  remove(chip: Chip): void;
  limits(): Limits | null;
}

export type ChipState = "uploading" | "ready" | "failed";

const SIZE_PX = 36;

export class Chip {
  readonly element: HTMLLIElement;
  readonly remove: HTMLButtonElement;
  state: ChipState;
  private stop: AbortController | null = null;
  private readonly bar: HTMLElement;
  private readonly note = h("span", { class: "size" });
  private readonly error = h("span", { class: "error", role: "alert" });
  private readonly retry: HTMLButtonElement;

  /** Creates the chip of a chosen file, or of an uploaded one, whose bytes may be elsewhere. */
  constructor(
    private readonly texts: FileTexts,
    private readonly code: string,
    private readonly actions: ChipActions,
    readonly file: File | null,
    public attachment: Attachment | null,
  ) {
    const name = file?.name ?? attachment?.name ?? "";
    const type = file ? typeOf(file) : (attachment?.mimeType ?? "");
    const button = (label: string, path: string) => h("button", { type: "button", class: "tool", "aria-label": fill(label, { name }), title: fill(label, { name }) }, icon(path));
    this.retry = button(texts.retry, icons.anew);
    this.remove = button(texts.remove, icons.close);
    this.note.textContent = formatBytes(file?.size ?? attachment?.bytes ?? 0, code);
    this.bar = h("span", { class: "bar", role: "progressbar", "aria-label": fill(texts.uploading, { name }), "aria-valuemin": 0, "aria-valuemax": 100 }, h("i"));
    const preview = createPreview(type);
    const about = h("span", { class: "about" }, h("span", { class: "name", dir: "auto", title: name }, name), this.note, this.error);
    this.element = h("li", { class: "chip" }, preview, about, this.retry, this.remove, this.bar);
    this.retry.onclick = () => {
      this.remove.focus();
      void this.start();
    };
    this.remove.onclick = () => actions.remove(this);
    this.element.onkeydown = (event) => {
      if (event.key !== "Delete" && event.key !== "Backspace") return;
      event.preventDefault();
      actions.remove(this);
    };
    if (file) void drawImage(preview, file, type, SIZE_PX, SIZE_PX);
    // A message must not be sent before the upload has started.
    this.state = attachment ? "ready" : "uploading";
    this.bar.hidden = this.retry.hidden = true;
  }

  /** Uploads the file; a failure is shown. */
  async start(): Promise<void> {
    if (!this.file) return;
    const stop = new AbortController();
    this.stop = stop;
    this.progress(0);
    this.show("uploading");
    try {
      this.attachment = await this.actions.upload(this.file, (share) => this.progress(share), stop.signal);
      if (stop.signal.aborted) return;
      this.show("ready");
      this.actions.uploaded(this);
    } catch (error) {
      if (!stop.signal.aborted) this.fail(error);
    }
  }

  cancel(): void {
    this.stop?.abort();
  }

  /** Shows that the service no longer has the file. */
  lose(): void {
    this.show("failed", this.texts.gone, this.file !== null);
  }

  private fail(error: unknown): void {
    const { status, details } = fields(error);
    const isPassing = typeof status !== "number" || status === 0 || status === 408 || status === 429 || status >= 500;
    const limits = this.actions.limits();
    const max = Number(fields(details).max) || limits?.maxBytes || 0;
    const { texts, code } = this;
    if (isPassing) this.show("failed", texts.interrupted, true);
    else if (status === 413) this.show("failed", tooLarge(texts, max, code));
    else if (status === 415) this.show("failed", wrongType(texts, limits));
    else this.show("failed", texts.refused);
  }

  private progress(share: number): void {
    const percent = Math.round(share * 100);
    set(this.bar, { "aria-valuenow": percent });
    (this.bar.firstElementChild as HTMLElement).style.transform = `scaleX(${share})`;
  }

  private show(state: ChipState, error = "", canRetry = false): void {
    this.state = state;
    this.bar.hidden = state !== "uploading";
    this.note.hidden = state === "failed";
    this.error.textContent = error;
    this.retry.hidden = !canRetry;
    this.element.classList.toggle("failed", state === "failed");
    this.actions.changed();
  }
}

export function tooLarge(texts: FileTexts, maxBytes: number, code: string): string {
  return fill(texts.tooLarge, { limit: formatBytes(maxBytes, code) });
}

export function wrongType(texts: FileTexts, limits: Limits | null): string {
  return fill(texts.wrongType, { types: (limits?.types ?? []).map(typeLabel).join(", ") });
}
