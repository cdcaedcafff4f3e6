// Button that opens and closes a widget.

import { h, icon, icons, set } from "./dom.ts";
import { fill, type Language } from "./texts.ts";

export class Launcher {
  readonly element: HTMLButtonElement;
  private readonly label = h("span", { class: "label", dir: "auto" });
  private readonly count = h("span", { class: "count", hidden: true });
  private text = "";
  private unread = 0;
  private isOpen = false;

  constructor(
    private readonly language: Language,
    toggle: () => void,
  ) {
    this.element = h("button", { type: "button", class: "launcher", "aria-controls": "panel", "aria-haspopup": "dialog" });
    this.element.onclick = toggle;
    this.update();
  }

  configure(text: string): void {
    this.text = text.trim();
    this.update();
  }

  open(isOpen: boolean): void {
    this.isOpen = isOpen;
    if (isOpen) this.unread = 0;
    this.update();
  }

  /** Shows the badge for an unread reply. */
  missed(): void {
    this.unread += 1;
    this.update();
  }

  private update(): void {
    const { texts } = this.language;
    const hasText = this.text !== "" && !this.isOpen;
    const unread = this.unread > 0 ? fill(texts.unread, { n: this.unread }) : "";
    const name = this.isOpen ? texts.close : this.text || texts.open;
    this.label.textContent = this.text;
    this.label.hidden = !hasText;
    this.count.textContent = String(this.unread);
    this.count.hidden = this.unread === 0;
    this.element.classList.toggle("round", !hasText);
    set(this.element, { "aria-expanded": this.isOpen ? "true" : "false", "aria-label": unread ? `${name} (${unread})` : name });
    this.element.replaceChildren(icon(this.isOpen ? icons.close : icons.chat), this.label, this.count);
  }
}
