// One widget on a page: connects its parts and handles their events.

import { type Attachment, Conversation, type Entry } from "./conversation.ts";
import { h, set } from "./dom.ts";
import { Emitter, type EventName, type Events } from "./emitter.ts";
import { Launcher } from "./launcher.ts";
import { VERSION } from "./lead.ts";
import type { Draw } from "./log.ts";
import { Memory } from "./memory.ts";
import type { Panel } from "./panel.ts";
import { Presence } from "./presence.ts";
import { Refusal, Service } from "./service.ts";
import { type Settings, DEFAULTS } from "./settings.ts";
import style from "./style.css";
import { Tabs } from "./tabs.ts";
import { chooseLanguage, english, translateDefaults, type Language } from "./texts.ts";
import { applyTheme } from "./theme.ts";

export interface Options {
  agentId: string;
  /** A key with the scope `chat`; not needed on pages that are allowed to use the agent. */
  apiKey?: string | null;
  /** Base URL of the service; default: the origin of the script. */
  baseUrl?: string | null;
  /** Language code; default: that of the page. */
  language?: string | null;
}

/** Parts that are loaded on demand. */
export interface Parts {
  base: string;
  panel(): Promise<typeof import("./panel.ts")>;
  markdown(): Promise<{ render: Draw }>;
  languages(): Promise<typeof import("./languages.ts")>;
  files(): Promise<typeof import("./files/files.ts")>;
}

const PHONE = "(max-width: 480px)";
const REVIVE_FIRST_MS = 5_000;
const REVIVE_MAX_MS = 120_000;

/** Time after which the window is loaded even if the page is busy. */
const IDLE_MAX_MS = 4_000;

export class Widget {
  isDestroyed = false;
  private readonly host = document.createElement("switchboard-widget");
  private readonly presence = new Presence(this.host, () => this.panel?.returned());
  private readonly root = h("div", { class: "root" });
  private readonly spoken = h("div", { class: "unseen", role: "status", "aria-live": "polite" });
  /** Assertive region for errors, beside the polite one for finished replies: visitors must learn immediately
   * that a message was not sent. */
  private readonly alert = h("div", { class: "unseen", role: "alert" });
  private readonly emitter = new Emitter();
  private readonly memory: Memory;
  private readonly service: Service;
  private readonly tabs: Tabs;
  private readonly conversation: Conversation;
  private language: Language = { code: "en", direction: "ltr", texts: english };
  private settings: Settings = DEFAULTS;
  private launcher: Launcher | null = null;
  private panel: Panel | null = null;
  private building: Promise<void> | null = null;
  private draw: Draw | null = null;
  /** Rating of the conversation. */
  private rating: number | null = null;
  private isOpen = false;
  private isReady = false;
  private readonly waiting: string[] = [];
  private autoOpenTimer = 0;
  private reviveTimer = 0;
  private reviveAfterMs = REVIVE_FIRST_MS;

  constructor(
    readonly options: Options,
    private readonly parts: Parts,
    private readonly onChange: (widget: Widget) => void,
  ) {
    const base = (options.baseUrl ?? parts.base).replace(/\/+$/, "");
    this.memory = new Memory(options.agentId);
    this.tabs = new Tabs(options.agentId, (news) => this.conversation.hear(news));
    this.service = new Service(base, options.agentId, options.apiKey ?? null, this.memory, (settings) => this.apply(settings));
    this.conversation = new Conversation(this.service, this.memory, this.tabs, {
      added: (entry, first) => this.panel?.add(entry, first),
      changed: (entry) => this.panel?.log.change(entry),
      removed: (entry) => this.panel?.log.remove(entry),
      failed: (entry, { code, message }) => {
        this.warn(this.panel?.log.note(entry) ?? "");
        this.emitter.emit("error", { code, message });
      },
      finished: (entry) => this.finished(entry),
      busy: (isBusy) => {
        this.panel?.composer.busy(isBusy);
        // The thanks are read when the visitor goes on.
        if (isBusy) this.panel?.rating.show(null);
        if (isBusy && this.panel) this.panel.lead.isThanking = false;
        this.ask();
      },
      earlier: (exist) => {
        if (this.panel) this.panel.log.earlier.hidden = !exist;
      },
      known: ({ rating, email, hasLead }) => {
        this.rating = rating;
        if (rating === null) this.panel?.rating.show(null);
        if (email) this.memory.set("email", "given");
        if (hasLead) this.memory.set("lead", "given");
        this.ask();
      },
      loaded: () => this.ask(),
      refusedEmail: (email) => {
        this.memory.set("email", null);
        this.panel?.email.refuse(email);
        this.ask();
      },
      refusedLead: (lead, param) => {
        this.memory.set("lead", null);
        this.panel?.lead.refuse(lead, param);
        this.renewForm();
      },
      refusedFiles: (entry, { code, message, param }) => {
        this.panel?.takeBack(entry, param);
        this.emitter.emit("error", { code, message });
      },
      sentLead: ({ consent, [VERSION]: version, ...values }) => this.emitter.emit("lead", { values: values as Record<string, string> }),
      offline: (message) => this.away(message),
    });
  }

  /** Corner of the widget, for other widgets in the same corner. */
  get corner(): string {
    return this.settings.position;
  }

  get isShown(): boolean {
    return this.isOpen;
  }

  get hasButton(): boolean {
    return this.launcher !== null;
  }

  /** Puts the widget back at once if the page has just removed it. */
  stay(): void {
    if (this.launcher) this.presence.ensure();
  }

  async start(): Promise<void> {
    const wished = this.options.language || document.documentElement.lang || navigator.language;
    const speaking = chooseLanguage([wished, ...navigator.languages], this.parts.languages);
    try {
      this.settings = await this.service.start();
    } catch (error) {
      if (!this.survive(error)) return;
    }
    this.language = await speaking;
    if (this.isDestroyed) return;
    this.show();
    this.isReady = true;
    this.emitter.emit("ready", { agentId: this.options.agentId, name: this.settings.name });
    const wasOpen = this.memory.get("open", "tab");
    if (wasOpen === "yes") this.setOpen(true, "page", false);
    else if (this.settings.autoOpen && wasOpen === null) {
      this.autoOpenTimer = window.setTimeout(() => this.openUnasked(), this.settings.autoOpenDelay);
    }
    for (const text of this.waiting.splice(0)) this.send(text);
  }

  open(): void {
    this.setOpen(true, "page", true);
  }

  close(): void {
    this.setOpen(false, "page", true);
  }

  toggle(): void {
    this.setOpen(!this.isOpen, "page", true);
  }

  /** Sends a message for the visitor and opens the window. */
  send(text: string): void {
    const message = String(text).trim();
    if (!message) return;
    if (!this.isReady) {
      this.waiting.push(message);
      return;
    }
    this.setOpen(true, "page", false);
    void this.conversation.load().then(() => this.say(message));
  }

  on<N extends EventName>(name: N, listener: (event: Events[N]) => void): () => void {
    return this.emitter.on(name, listener);
  }

  /** Reads the settings of the agent again, for pages that stay open for hours. */
  async refresh(): Promise<void> {
    await this.service.start();
  }

  destroy(): void {
    if (this.isDestroyed) return;
    this.isDestroyed = true;
    clearTimeout(this.autoOpenTimer);
    clearTimeout(this.reviveTimer);
    this.conversation.end();
    this.tabs.close();
    this.presence.end();
    this.emitter.emit("destroy", {});
    this.onChange(this);
  }

  /** Moves the button beside others in its corner. */
  stack(place: number): void {
    this.root.style.setProperty("--place", String(place));
  }

  /** Returns the settings with texts in the visitor's language. */
  private get shown(): Settings {
    return translateDefaults(this.settings, this.language);
  }

  /** Returns whether the widget can be shown despite the error. */
  private survive(error: unknown): boolean {
    const refusal = error instanceof Refusal ? error : new Refusal(0, "", String(error));
    this.emitter.emit("error", { code: refusal.code, message: refusal.message });
    if (!refusal.isPassing && refusal.status !== 429) {
      console.error(`Switchboard widget ${this.options.agentId}: ${refusal.code} ${refusal.message}`);
      this.destroy();
      return false;
    }
    this.settings = { ...this.remembered(), active: false };
    this.reviveLater();
    return true;
  }

  private remembered(): Settings {
    try {
      return { ...DEFAULTS, ...(JSON.parse(this.memory.get("settings") ?? "{}") as Partial<Settings>) };
    } catch {
      return DEFAULTS;
    }
  }

  private show(): void {
    const shadow = this.host.attachShadow({ mode: "open" });
    shadow.adoptedStyleSheets = [createStyleSheet(style)];
    set(this.root, { lang: this.language.code, dir: this.language.direction });
    this.launcher = new Launcher(this.language, () => this.setOpen(!this.isOpen, "visitor", true));
    this.root.append(this.launcher.element, this.spoken, this.alert);
    shadow.append(this.root);
    document.body?.append(this.host);
    this.presence.ensure();
    this.configure();
    if (!this.settings.active) this.emitter.emit("offline", { message: this.shown.offlineMessage });
    matchMedia(PHONE).addEventListener("change", () => this.place(false));
    // Preloads the window when the page is idle, so that it opens immediately on a click.
    const load = () => void this.build().catch(() => undefined);
    if ("requestIdleCallback" in window) requestIdleCallback(load, { timeout: IDLE_MAX_MS });
    else setTimeout(load, IDLE_MAX_MS);
  }

  /** Applies the settings of the service, at the start or with a new token. */
  private apply(settings: Settings): void {
    const old = this.settings;
    this.memory.set("settings", JSON.stringify(settings));
    clearTimeout(this.reviveTimer);
    if (settings.active) this.reviveAfterMs = REVIVE_FIRST_MS;
    else this.reviveLater();
    // The service returns fewer settings of an inactive agent than are known already.
    this.settings = settings.active ? settings : { ...old, ...pick(settings), active: false };
    if (this.launcher) this.configure();
  }

  private configure(): void {
    const { position, size, showAvatar } = this.settings;
    const [side, edge] = position.split("-");
    this.root.className = `root at-${side} at-${edge} ${size} ${showAvatar ? "" : "faceless"} ${this.isOpen ? "open" : ""} ${this.panel ? "built" : ""}`;
    applyTheme(this.root, this.settings.theme);
    this.launcher?.configure(this.shown.triggerText);
    this.panel?.configure(this.shown, this.draw);
    if (this.panel && this.settings.enableMarkdown && !this.draw) void this.loadMarkdown();
    this.ask();
    this.onChange(this);
  }

  private setOpen(isOpen: boolean, by: Events["open"]["by"], moveFocus: boolean): void {
    clearTimeout(this.autoOpenTimer);
    if (!this.launcher || this.isOpen === isOpen || this.isDestroyed) return;
    this.isOpen = isOpen;
    this.memory.set("open", isOpen ? "yes" : "no", "tab");
    this.launcher.open(isOpen);
    this.root.classList.toggle("open", isOpen);
    set(this.host, { open: isOpen });
    if (isOpen) void this.reveal(moveFocus);
    else this.panel?.show(false, false);
    if (moveFocus && !isOpen) this.launcher.element.focus();
    if (isOpen) this.emitter.emit("open", { by });
    else this.emitter.emit("close", { by: by === "visitor" ? by : "page" });
    this.onChange(this);
  }

  /** Does not auto-open where the window would cover the page. */
  private openUnasked(): void {
    if (!matchMedia(PHONE).matches) this.setOpen(true, "timer", false);
  }

  private async reveal(moveFocus: boolean): Promise<void> {
    try {
      await this.build();
    } catch (error) {
      this.emitter.emit("error", { code: "", message: String(error) });
      this.setOpen(false, "page", false);
      return;
    }
    if (!this.isOpen) return;
    this.place(moveFocus);
    void this.conversation.load();
  }

  private place(moveFocus: boolean): void {
    const coversPage = matchMedia(PHONE).matches;
    this.panel?.show(this.isOpen, coversPage);
    // The focus must leave elements that the window covers; a frame without focus must not take it.
    const isBehind = this.isOpen && coversPage && document.hasFocus() && document.activeElement !== this.host;
    if (moveFocus || isBehind) this.panel?.focus();
  }

  /** Creates the hidden window; several calls create one. */
  private build(): Promise<void> {
    this.building ??= this.parts.panel().then(
      (part) => this.install(part),
      (error: unknown) => {
        this.building = null;
        throw error;
      },
    );
    return this.building;
  }

  private install({ Panel, style }: typeof import("./panel.ts")): void {
    if (this.isDestroyed) return;
    this.host.shadowRoot?.adoptedStyleSheets.push(createStyleSheet(style));
    const { conversation, memory } = this;
    this.panel = new Panel(this.language, this.shown, {
      close: () => this.setOpen(false, "visitor", true),
      anew: () => {
        this.panel?.forget();
        conversation.reset();
        this.panel?.focus();
      },
      again: (entry) => conversation.again(entry),
      earlier: () => conversation.earlier(),
      revive: () => void this.revive(),
      send: (text, attachments) => this.say(text, attachments),
      loadFiles: this.parts.files,
      service: this.service,
      session: () => conversation.session(),
      announce: (text) => {
        this.spoken.textContent = text;
      },
      stop: () => void conversation.stop(),
      wait: () => conversation.waitFor(this.settings.rateLimitPerMinute),
      draft: (text) => memory.set("draft", text || null, "tab"),
      warn: (text) => this.warn(text),
      saveEmail: async (email) => {
        await conversation.patch({ visitorEmail: email });
        memory.set("email", "given");
        this.emitter.emit("email", { email });
      },
      skipEmail: () => {
        memory.set("email", "declined");
        this.ask();
        this.panel?.focus();
      },
      saveLead: async (values, version) => {
        const isSent = await conversation.patch({ lead: { ...values, ...(version ? { [VERSION]: version } : {}), consent: true } });
        memory.set("lead", "given");
        if (isSent) {
          this.emitter.emit("lead", { values });
          this.panel?.lead.thank();
        }
        this.ask();
        if (!isSent) this.panel?.focus();
      },
      renewForm: () => this.renewForm(),
      skipLead: (key) => {
        memory.set("lead", key);
        this.ask();
        this.panel?.focus();
      },
      rate: async (rating) => {
        await conversation.patch({ rating });
        this.rating = rating;
        this.emitter.emit("rating", { rating });
      },
      say: async (feedback) => void (await conversation.patch({ feedback })),
    });
    this.root.append(this.panel.element);
    this.root.classList.add("built");
    this.panel.configure(this.shown, this.draw);
    this.panel.composer.write(memory.get("draft", "tab") ?? "");
    for (const entry of conversation.entries) this.panel.add(entry, false);
    this.panel.composer.busy(conversation.isBusy);
    this.ask();
    if (this.settings.enableMarkdown) void this.loadMarkdown();
  }

  private async loadMarkdown(): Promise<void> {
    try {
      this.draw = (await this.parts.markdown()).render;
    } catch {
      // Markdown stays visible as text.
      return;
    }
    this.panel?.log.configure(this.shown, this.draw);
  }

  private say(text: string, attachments?: Attachment[]): void {
    if (!this.settings.active) return;
    this.emitter.emit("message", { role: "user", text, id: null });
    this.conversation.send(text, attachments);
  }

  private finished(entry: Entry): void {
    this.emitter.emit("message", { role: "assistant", text: entry.text, id: entry.id });
    if (!this.isOpen) this.launcher?.missed();
    // Of an interrupted reply, only the interruption is announced.
    else if (entry.state !== "broken") this.spoken.textContent = this.panel?.log.spoken(entry) ?? entry.text;
    this.ask();
  }

  /** Reads the lead form again, which may have changed. */
  private renewForm(): void {
    void this.refresh().catch(() => undefined);
  }

  private warn(text: string): void {
    if (this.isOpen) this.alert.textContent = text;
  }

  /** Shows the forms that are due, but not while a reply streams. */
  private ask(): void {
    const { enableEmailCapture, enableRating, active } = this.settings;
    const { entries, isBusy, isKnown } = this.conversation;
    const hasReply = entries.some(({ role, state }) => role === "assistant" && state === "final");
    this.panel?.ask({
      isQuiet: active && !isBusy,
      forEmail: enableEmailCapture && !this.memory.get("email"),
      forRating: enableRating && hasReply && this.rating === null,
      entries: isKnown ? entries : null,
      leadAnswer: this.memory.get("lead"),
    });
  }

  private away(message: string | null): void {
    this.settings = { ...this.settings, active: false, ...(message ? { offlineMessage: message } : {}) };
    this.configure();
    this.emitter.emit("offline", { message: this.shown.offlineMessage });
    this.reviveLater();
  }

  /** Polls an inactive agent or unreachable service until it is back. */
  private reviveLater(): void {
    clearTimeout(this.reviveTimer);
    if (this.isDestroyed) return;
    this.reviveTimer = window.setTimeout(() => void this.revive(), this.reviveAfterMs);
    this.reviveAfterMs = Math.min(this.reviveAfterMs * 2, REVIVE_MAX_MS);
  }

  private async revive(): Promise<void> {
    try {
      await this.service.start();
      if (this.isOpen && this.settings.active) void this.conversation.load();
    } catch {
      this.reviveLater();
    }
  }
}

function createStyleSheet(text: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return sheet;
}

/** Settings of an inactive agent. */
function pick(settings: Settings): Partial<Settings> {
  const { name, offlineMessage, theme, position, size, triggerText, disclosure, disclosureText, privacyLink } = settings;
  return { name, offlineMessage, theme, position, size, triggerText, disclosure, disclosureText, privacyLink };
}
