// Input of the visitor: a growing field, files, and a button to send or stop.

import type { Attachment } from "./conversation.ts";
import { h, icon, icons, set } from "./dom.ts";
import type { Settings } from "./settings.ts";
import { fill, type Language } from "./texts.ts";

export interface ComposerActions {
  send(text: string, attachments: Attachment[]): void;
  stop(): void;
  /** Seconds until the next message may be sent. */
  wait(): number;
  draft(text: string): void;
  /** Announces to screen readers why an action was not performed. */
  warn(text: string): void;
}

/** Files that the visitor has chosen for the next message. */
export interface FileTray {
  readonly state: "empty" | "ready" | "uploading" | "failed";
  /** Tells the visitor why the message is not sent yet. */
  readonly reason: string;
  /** Removes and returns the uploaded files. */
  take(): Attachment[];
}

/** Share of the maximum length from which the remaining characters are shown. */
const COUNTED_SHARE = 0.8;
const HEIGHT_MAX_PX = 132;

export class Composer {
  readonly element: HTMLFormElement;
  readonly input: HTMLTextAreaElement;
  private readonly button = h("button", { type: "submit", class: "send" });
  private readonly note = h("p", { class: "note", id: "note" });
  private isBusy = false;
  private isBlocked = false;
  private files: FileTray | null = null;
  /** The visitor has sent the message, which waits for its files. */
  private isHeld = false;
  private slowTimer = 0;

  constructor(
    private readonly language: Language,
    private settings: Settings,
    private readonly actions: ComposerActions,
  ) {
    const { texts } = language;
    this.input = h("textarea", { rows: 1, "aria-label": texts.label, "aria-describedby": "note", dir: "auto", enterkeyhint: "send" });
    this.element = h("form", { class: "composer", novalidate: true }, h("div", { class: "field" }, this.input, this.button), this.note);
    this.input.oninput = () => {
      actions.draft(this.input.value);
      this.isHeld = false;
      this.update();
    };
    this.input.onkeydown = (event) => {
      // Enter that ends an input method composition does not send.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.isBusy) this.submit();
    };
    this.element.onsubmit = (event) => {
      event.preventDefault();
      if (this.isBusy) actions.stop();
      else this.submit();
    };
    this.update();
  }

  configure(settings: Settings): void {
    this.settings = settings;
    set(this.input, { placeholder: settings.placeholderText || this.language.texts.placeholder });
    this.block(this.isBlocked);
    this.update();
  }

  /** Hides the input until the visitor has answered a form. */
  block(isBlocked: boolean): void {
    this.isBlocked = isBlocked;
    this.element.hidden = isBlocked || !this.settings.active;
    this.fit();
  }

  write(text: string): void {
    this.input.value = text;
    this.update();
  }

  /** Adds the files to each message, in elements above and beside the field. */
  attach(files: FileTray, above: HTMLElement, beside: HTMLElement): void {
    this.files = files;
    this.element.prepend(above);
    this.input.before(beside);
    this.update();
  }

  /** Sends a message that waited for its files. */
  filesChanged(): void {
    if (this.state === "empty") this.isHeld = false;
    if (this.isHeld && this.state === "ready") this.submit();
    else if (this.isHeld && this.state === "failed") this.hold();
    else this.update();
  }

  busy(isBusy: boolean): void {
    this.isBusy = isBusy;
    this.update();
  }

  /** Adjusts the height once the field is visible. */
  fit(): void {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, HEIGHT_MAX_PX)}px`;
  }

  private submit(): void {
    const text = this.input.value.trim();
    if ((!text && this.state === "empty") || length(text) > this.settings.maxMessageLength) return;
    if (this.state === "uploading" || this.state === "failed") return this.hold();
    this.isHeld = false;
    const wait = this.actions.wait();
    if (wait > 0) {
      this.slow(wait);
      // Announced once; the countdown is only visible.
      return this.actions.warn(this.note.textContent ?? "");
    }
    this.write("");
    this.actions.draft("");
    this.actions.send(text, this.files?.take() ?? []);
  }

  private get state(): FileTray["state"] {
    return this.files?.state ?? "empty";
  }

  private hold(): void {
    const { files } = this;
    // After a failure, the visitor decides again.
    this.isHeld = this.state === "uploading";
    this.update();
    this.tell(files?.reason ?? "", !this.isHeld);
    this.actions.warn(files?.reason ?? "");
  }

  private slow(seconds: number): void {
    clearTimeout(this.slowTimer);
    this.tell(fill(this.language.texts.slow, { n: seconds }), true);
    this.slowTimer = window.setTimeout(() => {
      const left = this.actions.wait();
      if (left > 0) this.slow(left);
      else this.update();
    }, 1000);
  }

  private update(): void {
    clearTimeout(this.slowTimer);
    const { texts } = this.language;
    const used = length(this.input.value.trim());
    const left = this.settings.maxMessageLength - used;
    const isOver = left < 0;
    const label = this.isBusy ? texts.stop : texts.send;
    set(this.button, { "aria-label": label, title: label, "aria-disabled": !this.isBusy && ((used === 0 && this.state === "empty") || isOver) ? "true" : null });
    this.button.classList.toggle("stop", this.isBusy);
    this.button.replaceChildren(icon(this.isBusy ? icons.stop : icons.send));
    set(this.input, { "aria-invalid": isOver ? "true" : null });
    const isNear = used > this.settings.maxMessageLength * COUNTED_SHARE;
    const held = this.isHeld ? (this.files?.reason ?? "") : "";
    this.tell(isOver ? fill(texts.over, { n: -left }) : held || (isNear ? fill(texts.left, { n: left }) : ""), isOver);
    this.fit();
  }

  private tell(note: string, isBad: boolean): void {
    this.note.textContent = note;
    this.note.classList.toggle("bad", isBad);
  }
}

/** Counts characters as the service does: Unicode scalar values. */
function length(text: string): number {
  return Array.from(text).length;
}
