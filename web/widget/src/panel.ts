// Window of a widget: header, log, forms and input. It is loaded separately, because most
// visitors never open it.

import { initial } from "./cards.ts";
import { Composer, type ComposerActions } from "./composer.ts";
import type { Entry } from "./conversation.ts";
import { h, icon, icons } from "./dom.ts";
import type { Files, FilesHost } from "./files/files.ts";
import { EmailForm, RatingForm } from "./forms.ts";
import { LeadForm, asksForEmail, findDueForm } from "./lead.ts";
import { type Draw, Log } from "./log.ts";
import style from "./panel.css";
import type { Settings } from "./settings.ts";
import { fill, type Language } from "./texts.ts";

/** Name of the service for visitors. */
const PROVIDER = "Switchboard";

export { style };

export interface PanelActions extends ComposerActions, FilesHost {
  loadFiles(): Promise<typeof import("./files/files.ts")>;
  close(): void;
  anew(): void;
  again(entry: Entry): void;
  earlier(): Promise<void>;
  /** Checks again whether the service is available. */
  revive(): void;
  saveEmail(email: string): Promise<void>;
  skipEmail(): void;
  saveLead(values: Record<string, string>, version: string): Promise<void>;
  /** Reads the settings again, because the lead form has changed. */
  renewForm(): void;
  /** Remembers that the visitor skipped the form with this key. */
  skipLead(key: string): void;
  rate(rating: number): Promise<void>;
  say(feedback: string): Promise<void>;
}

/** State that decides which forms are due. */
export interface FormState {
  /** Visitors can write, and no reply streams. */
  isQuiet: boolean;
  forEmail: boolean;
  forRating: boolean;
  /** Messages of the conversation; null until they have been read. */
  entries: readonly Entry[] | null;
  /** Stored answer to the lead form. */
  leadAnswer: string | null;
}

export class Panel {
  readonly element: HTMLElement;
  readonly log: Log;
  readonly composer: Composer;
  readonly rating: RatingForm;
  readonly email: EmailForm;
  readonly lead: LeadForm;
  private readonly title = h("h2", { id: "title", tabindex: -1, dir: "auto" });
  private readonly face = h("span", { class: "avatar", "aria-hidden": "true" });
  private readonly away: HTMLElement;
  private readonly awayText = h("p", { dir: "auto" });
  private readonly badge: HTMLElement;
  private readonly anew: HTMLElement;
  /** Visitors can send files, or have sent some. */
  private needsFiles = false;
  private files: Files | null = null;
  private loadingFiles: Promise<void> | null = null;

  constructor(
    private readonly language: Language,
    private settings: Settings,
    private readonly actions: PanelActions,
  ) {
    const { texts } = language;
    this.log = new Log(language, settings, actions.again);
    this.composer = new Composer(language, settings, actions);
    this.rating = new RatingForm(language, actions.rate, actions.say);
    this.email = new EmailForm(language, actions.saveEmail, actions.skipEmail);
    this.lead = new LeadForm(language, actions.saveLead, actions.skipLead, actions.renewForm);
    const anew = h("button", { type: "button", class: "plain", "aria-label": texts.anew, title: texts.anew }, icon(icons.anew));
    const close = h("button", { type: "button", class: "plain", "aria-label": texts.close, title: texts.close }, icon(icons.close));
    anew.onclick = actions.anew;
    this.anew = anew;
    close.onclick = actions.close;
    this.log.earlier.onclick = () => void actions.earlier().catch(() => undefined);
    const revive = h("button", { type: "button", class: "filled" }, texts.retry);
    revive.onclick = actions.revive;
    this.away = h("div", { class: "away", hidden: true }, this.awayText, revive);
    this.badge = h("p", { class: "powered", hidden: true }, fill(texts.powered, { name: PROVIDER }));
    // Not a header element, which would be a second banner of the page.
    const header = h("div", { class: "header" }, this.face, this.title, anew, close);
    this.element = h("section", { class: "panel", id: "panel", role: "dialog", "aria-labelledby": "title", hidden: true }, header, this.log.element, this.away, this.composer.element, this.badge);
    this.log.append(this.email.element, this.lead.element, this.rating.element);
    this.email.element.hidden = this.lead.element.hidden = this.rating.element.hidden = true;
    this.element.onkeydown = (event) => this.key(event);
  }

  configure(settings: Settings, draw: Draw | null): void {
    this.settings = settings;
    this.title.textContent = settings.name;
    this.face.textContent = initial(settings.name);
    this.face.hidden = !settings.showAvatar;
    this.badge.hidden = !settings.showPoweredBy;
    this.away.hidden = settings.active;
    this.anew.hidden = !settings.active;
    this.awayText.textContent = settings.offlineMessage || this.language.texts.away;
    this.log.configure(settings, draw);
    this.composer.configure(settings);
    this.email.configure(settings.privacyLink);
    this.needsFiles ||= !!settings.files;
    this.files?.configure(settings.files);
    void this.useFiles();
  }

  /** Shows forms that are due, or the thanks of those that were just sent. */
  ask({ isQuiet, forEmail, forRating, entries, leadAnswer }: FormState): void {
    const { leadForm, privacyLink } = this.settings;
    const due = isQuiet && entries ? findDueForm(leadForm, entries, leadAnswer) : null;
    if (due) this.lead.show(due, privacyLink);
    this.lead.element.hidden = !(isQuiet && (due || this.lead.isThanking));
    this.email.element.hidden = !(isQuiet && forEmail && !due && !asksForEmail(leadForm));
    this.rating.element.hidden = !(isQuiet && !due && (forRating || this.rating.isThanking));
    const root = this.element.getRootNode() as ShadowRoot;
    const wasWriting = this.composer.element.contains(root.activeElement);
    this.composer.block(due?.isFirst ?? false);
    if (due) this.log.keep(this.lead.element, due.isFirst);
    if (due?.isFirst && wasWriting) this.focus();
  }

  add(entry: Entry, first: boolean): void {
    this.log.add(entry, first);
    if (!entry.attachments[0]) return;
    this.needsFiles = true;
    void this.useFiles();
  }

  /** Puts a message back into the composer, because one of its files is gone. */
  takeBack({ text, attachments }: Entry, param: string): void {
    const { composer } = this;
    const written = [text, composer.input.value].filter(Boolean).join("\n");
    composer.write(written);
    this.actions.draft(written);
    this.needsFiles = true;
    void this.useFiles().then(() => this.files?.takeBack(attachments, param));
  }

  /** Removes what the visitor has entered for this conversation only. */
  forget(): void {
    this.lead.reset();
    this.files?.forget();
  }

  show(isShown: boolean, isModal: boolean): void {
    this.element.hidden = !isShown;
    if (isModal) this.element.setAttribute("aria-modal", "true");
    else this.element.removeAttribute("aria-modal");
    if (!isShown) {
      this.element.style.animation = "";
      return;
    }
    void this.useFiles();
    this.composer.fit();
    this.log.toLatest();
  }

  /** Restores what an element loses when it leaves the page. */
  returned(): void {
    // The window is not opened again.
    this.element.style.animation = "none";
    this.log.restore();
  }

  focus(): void {
    // On a phone, focusing the field would open a keyboard over half of the conversation.
    const hasKeyboard = !matchMedia("(pointer: coarse)").matches;
    if (hasKeyboard && !this.composer.element.hidden) this.composer.input.focus();
    else if (hasKeyboard && this.settings.active) this.lead.focus();
    else this.title.focus();
  }

  /** Loads the part for files, once the window is open. */
  private async useFiles(): Promise<void> {
    if (this.files || !this.needsFiles || this.element.hidden) return;
    this.loadingFiles ??= this.actions.loadFiles().then(
      ({ Files, style }) => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(style);
        (this.element.getRootNode() as ShadowRoot).adoptedStyleSheets.push(sheet);
        this.files = new Files(this, this.language, this.actions);
        this.files.configure(this.settings.files);
      },
      // Without it, messages have only text.
      () => {
        this.loadingFiles = null;
      },
    );
    await this.loadingFiles;
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      this.actions.close();
    } else if (event.key === "Tab" && this.element.hasAttribute("aria-modal")) {
      this.turnAround(event);
    }
  }

  /** Keeps the focus inside a window that covers the page. */
  private turnAround(event: KeyboardEvent): void {
    const all = this.element.querySelectorAll<HTMLElement>("button, textarea, input, select, a[href], [tabindex='0']");
    const reachable = [...all].filter((element) => element.getClientRects().length > 0);
    const [first, last] = [reachable[0], reachable[reachable.length - 1]];
    const focused = (this.element.getRootNode() as ShadowRoot).activeElement;
    const edge = event.shiftKey ? first : last;
    if (focused !== edge && !(event.shiftKey && focused === this.title)) return;
    event.preventDefault();
    (event.shiftKey ? last : first)?.focus();
  }
}
