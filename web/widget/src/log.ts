// Shows the entries of a conversation and follows the latest one while the visitor is at the end.

import { initial, productGrid } from "./cards.ts";
import type { Attachment, Entry } from "./conversation.ts";
import { h, icon, icons, webLink } from "./dom.ts";
import type { Settings } from "./settings.ts";
import { fill, type Language } from "./texts.ts";

/** Markdown renderer, loaded on demand. */
export type Draw = (container: Element, text: string) => void;

/** Returns the list of the files of a message. */
export type DrawFiles = (attachments: Attachment[]) => HTMLElement;

interface Row {
  element: HTMLElement;
  bubble: HTMLElement;
  meta: HTMLElement;
  files: HTMLElement | null;
  shownCards: unknown;
  cards: HTMLElement | null;
}

/** Distance from the end within which the log follows new text. */
const END_PX = 80;
/** Space above the first line of a long reply. */
const MARGIN_PX = 8;

export class Log {
  readonly element: HTMLElement;
  readonly earlier: HTMLButtonElement;
  private readonly list: HTMLElement;
  private readonly latest: HTMLButtonElement;
  private readonly rows = new Map<Entry, Row>();
  private readonly dirty = new Set<Entry>();
  /** Greeting and notices, above all messages. */
  private readonly opening = h("div");
  private draw: Draw | null = null;
  private drawFiles: DrawFiles | null = null;
  private isAtEnd = true;
  /** The latest reply, whose first line stays in view until the visitor scrolls past it. */
  private kept: HTMLElement | null = null;
  private top = 0;
  private readonly sizes = new ResizeObserver(() => this.follow());

  constructor(
    private readonly language: Language,
    private settings: Settings,
    private readonly again: (entry: Entry) => void,
  ) {
    const { texts } = language;
    this.earlier = h("button", { type: "button", class: "quiet", hidden: true }, texts.earlier);
    this.latest = h("button", { type: "button", class: "latest", "aria-label": texts.latest, hidden: true }, icon(icons.down));
    this.latest.onclick = () => {
      this.kept = null;
      this.toLatest();
    };
    this.list = h("div", { class: "rows" }, this.opening);
    const scroller = h("div", { class: "log", role: "region", "aria-label": texts.conversation, tabindex: 0 }, this.earlier, this.list);
    scroller.onscroll = () => this.look();
    this.element = h("div", { class: "log-frame" }, scroller, this.latest);
    // The window resizes with the keyboard of a phone.
    this.sizes.observe(scroller);
  }

  /** Keeps the start of a form, or the notices above it, in view, like the first line of a reply. */
  keep(footer: HTMLElement, withOpening: boolean): void {
    this.kept ??= withOpening ? this.opening : footer;
  }

  /** Container below the last message. */
  append(...footers: HTMLElement[]): void {
    this.scroller.append(...footers);
    // Its content grows after input.
    for (const footer of footers) this.sizes.observe(footer);
  }

  configure(settings: Settings, draw: Draw | null): void {
    this.settings = settings;
    this.draw = settings.enableMarkdown ? draw : null;
    this.greet();
    for (const entry of this.rows.keys()) this.paint(entry);
    this.follow();
  }

  /** Shows the files of all messages. */
  showFiles(draw: DrawFiles): void {
    this.drawFiles = draw;
    for (const entry of this.rows.keys()) this.paint(entry);
    this.follow();
  }

  add(entry: Entry, first: boolean): void {
    const bubble = h("div", { class: "bubble", dir: "auto" });
    const meta = h("div", { class: "meta" });
    const element = this.rowElement(entry.role, bubble, meta);
    this.rows.set(entry, { element, bubble, meta, files: null, shownCards: null, cards: null });
    const before = this.scroller.scrollHeight;
    if (first) this.list.insertBefore(element, this.opening.nextSibling);
    else this.list.append(element);
    this.paint(entry);
    if (first) this.scroller.scrollTop += this.scroller.scrollHeight - before;
    else {
      this.kept = entry.role === "assistant" ? element : null;
      if (!this.kept) this.isAtEnd = true;
      this.follow();
    }
  }

  /** Renders a change with the next frame, because text may arrive faster than the screen refreshes. */
  change(entry: Entry): void {
    if (this.dirty.size === 0) {
      const paint = () => {
        const entries = [...this.dirty];
        this.dirty.clear();
        for (const entry of entries) this.paint(entry);
        this.follow();
      };
      // Hidden tabs have no frames.
      if (document.hidden) setTimeout(paint, 50);
      else requestAnimationFrame(paint);
    }
    this.dirty.add(entry);
  }

  remove(entry: Entry): void {
    const element = this.rows.get(entry)?.element;
    if (element === this.kept) this.kept = null;
    element?.remove();
    this.rows.delete(entry);
  }

  /** Returns the text of a reply without Markdown. */
  spoken(entry: Entry): string {
    this.paint(entry);
    this.follow();
    return this.rows.get(entry)?.bubble.innerText ?? entry.text;
  }

  /** Returns the note below an entry. */
  note({ isLost, isShortened, state, waitS }: Entry): string {
    const { texts } = this.language;
    if (isLost) return texts.reconnecting;
    if (state === "stopped") return texts.stopped;
    if (state === "broken") return texts.broken;
    if (isShortened) return texts.shortened;
    if (state !== "unsent") return "";
    return waitS > 0 ? fill(texts.slow, { n: waitS }) : texts.unsent;
  }

  /** Shows the end, or the first line of the latest reply if it is too long for both. */
  toLatest(): void {
    this.isAtEnd = true;
    this.follow();
  }

  /** Scrolls to where the log was before it left the page. */
  restore(): void {
    this.scroller.scrollTop = this.top;
  }

  private get scroller(): HTMLElement {
    return this.element.firstElementChild as HTMLElement;
  }

  private follow(): void {
    if (this.isAtEnd) this.scroller.scrollTop = Math.min(this.scroller.scrollHeight, this.firstLine());
    this.look();
  }

  private firstLine(): number {
    return this.kept && !this.kept.hidden ? this.kept.offsetTop - MARGIN_PX : Infinity;
  }

  private look(): void {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    // Hidden, or not in the page.
    if (clientHeight === 0) return;
    this.top = scrollTop;
    if (scrollTop > this.firstLine() + 1) this.kept = null;
    this.isAtEnd = scrollHeight - scrollTop - clientHeight < END_PX;
    this.latest.hidden = this.isAtEnd;
  }

  private greet(): void {
    const { welcomeMessage, disclosure, disclosureText, privacyLink } = this.settings;
    const { texts } = this.language;
    this.opening.replaceChildren();
    if (welcomeMessage) {
      const bubble = h("div", { class: "bubble", dir: "auto" });
      this.write(bubble, welcomeMessage, true);
      this.opening.append(this.rowElement("assistant", bubble, h("div", { class: "meta" })));
    }
    const words = disclosure && h("span", { dir: "auto" }, disclosureText || texts.disclosure);
    const link = webLink(privacyLink, texts.privacy);
    if (words || link) this.opening.append(h("p", { class: "notice", role: "note", "aria-label": texts.notice }, words, " ", link));
  }

  private rowElement(role: Entry["role"], bubble: HTMLElement, meta: HTMLElement): HTMLElement {
    const { texts } = this.language;
    const speaker = role === "user" ? texts.you : fill(texts.says, { name: this.settings.name });
    const body = h("div", { class: "body" }, h("span", { class: "unseen" }, speaker), bubble, meta);
    return h("div", { class: `row ${role}` }, role === "assistant" && this.avatar(), body);
  }

  private avatar(): HTMLElement {
    return h("span", { class: "avatar", "aria-hidden": "true" }, initial(this.settings.name));
  }

  private paint(entry: Entry): void {
    const row = this.rows.get(entry);
    if (!row) return;
    const isWaiting = entry.role === "assistant" && entry.state === "waiting";
    row.element.classList.toggle("waiting", isWaiting);
    if (isWaiting) this.write(row.bubble, this.dots(entry), false);
    else this.write(row.bubble, entry.text, entry.role === "assistant");
    row.bubble.hidden = !isWaiting && entry.text === "";
    if (!row.files && this.drawFiles && entry.attachments[0]) {
      row.files = this.drawFiles(entry.attachments);
      row.bubble.before(row.files);
    }
    if (entry.cards !== row.shownCards) {
      row.cards?.remove();
      row.cards = productGrid(entry.cards, this.language.texts.products);
      if (row.cards) row.meta.before(row.cards);
      row.shownCards = entry.cards;
    }
    row.meta.replaceChildren(...this.meta(entry));
  }

  private write(bubble: HTMLElement, content: string | HTMLElement, isAgents: boolean): void {
    const draw = isAgents ? this.draw : null;
    if (typeof content !== "string") {
      bubble.replaceChildren(content);
    } else if (draw) {
      if (!bubble.classList.contains("drawn")) bubble.replaceChildren();
      draw(bubble, content);
    } else if (bubble.textContent !== content || bubble.firstElementChild) {
      bubble.textContent = content;
    }
    bubble.classList.toggle("drawn", draw !== null);
  }

  private dots(entry: Entry): HTMLElement {
    const { texts } = this.language;
    const label = entry.isWorking ? texts.working : fill(texts.typing, { name: this.settings.name });
    const dots = h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
    return h("span", { class: "typing" }, dots, h("span", { class: entry.isWorking ? "" : "unseen" }, label));
  }

  private meta(entry: Entry): HTMLElement[] {
    const { texts, code } = this.language;
    const parts: HTMLElement[] = [];
    const isFinal = entry.state !== "waiting" && entry.state !== "running";
    if (this.settings.showTimestamp && isFinal) {
      const at = new Date(entry.at);
      const time = new Intl.DateTimeFormat(code, { hour: "2-digit", minute: "2-digit" }).format(at);
      parts.push(h("time", { datetime: at.toISOString() }, time));
    }
    const note = this.note(entry);
    if (note) parts.push(h("span", { class: entry.state === "unsent" || entry.state === "broken" ? "bad" : "" }, note));
    if (entry.state === "unsent" || (entry.state === "broken" && entry.role === "assistant")) {
      const retry = h("button", { type: "button", class: "link" }, texts.retry);
      retry.onclick = () => this.again(entry);
      parts.push(retry);
    }
    return parts;
  }
}
