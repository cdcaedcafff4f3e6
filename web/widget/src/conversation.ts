// Conversation of a visitor with an agent: messages, running replies, and changes by other tabs. Independent
// of its presentation.

import { type Memory, randomId } from "./memory.ts";
import { FollowedReply, type Outcome } from "./reply.ts";
import { Refusal, type Service } from "./service.ts";
import { fields } from "./settings.ts";
import type { TabMessage, Tabs, SentMessage } from "./tabs.ts";

export type State = "sending" | "waiting" | "running" | "final" | "stopped" | "broken" | "unsent";

/** A file of a message, as the service describes it. */
export interface Attachment {
  fileId: string;
  name: string;
  mimeType: string;
  bytes: number;
}

export interface Entry {
  role: "user" | "assistant";
  id: string | null;
  text: string;
  attachments: Attachment[];
  at: number;
  state: State;
  /** UI specification as sent by the service. */
  cards: unknown;
  isWorking: boolean;
  isLost: boolean;
  /** The reply ended at the longest length. */
  isShortened: boolean;
  /** Seconds until a rate-limited message may be sent again. */
  waitS: number;
}

export interface ConversationView {
  added(entry: Entry, first: boolean): void;
  changed(entry: Entry): void;
  removed(entry: Entry): void;
  /** A message was not sent, or its reply was interrupted. */
  failed(entry: Entry, refusal: Refusal): void;
  /** A followed reply has ended. */
  finished(entry: Entry): void;
  busy(isBusy: boolean): void;
  /** There are messages before the first one shown. */
  earlier(exist: boolean): void;
  /** Visitor data that the service has stored. */
  known(facts: { rating: number | null; email: string | null; hasLead: boolean }): void;
  /** The messages of the conversation have been read. */
  loaded(): void;
  /** The service rejected the email address; the visitor may enter another one. */
  refusedEmail(email: string): void;
  /** The service rejected a field of the lead of the first message. */
  refusedLead(lead: Record<string, string>, param: string): void;
  /** The message was not sent, because the service no longer has one of its files. */
  refusedFiles(entry: Entry, refusal: Refusal): void;
  /** The first message has taken a lead along. */
  sentLead(lead: Record<string, unknown>): void;
  /** The agent is inactive (with its message), or the service does not respond. */
  offline(message: string | null): void;
}

const PAGE = 50;
const MINUTE_MS = 60_000;

export class Conversation {
  readonly entries: Entry[] = [];
  private running: { stop: AbortController; following: FollowedReply | null; isStopWanted: boolean } | null = null;
  private readonly queue: { text: string; attachments: Attachment[] }[] = [];
  private firstOffset = 0;
  private loading: Promise<void> | null = null;
  private isLoaded = false;
  /** The messages have been read at least once. */
  isKnown = false;
  /** Session whose messages are shown; storage has the latest one that any tab started. */
  private shown: string | null = null;
  /** Messages of other tabs that are not shown yet. */
  private readonly missed: SentMessage[] = [];
  /** Another tab made a change that must be reread from the service. */
  private isBehind = false;
  /** Time at which the last reply ended here. */
  private lastEndedAt = 0;

  constructor(
    private readonly service: Service,
    private readonly memory: Memory,
    private readonly tabs: Tabs,
    private readonly view: ConversationView,
  ) {}

  get isBusy(): boolean {
    return this.running !== null;
  }

  /** Shows earlier messages once, and follows a running reply. */
  load(): Promise<void> {
    if (this.isLoaded) return Promise.resolve();
    this.loading ??= this.read()
      .then(() => {
        this.isLoaded = this.isKnown = true;
        this.view.loaded();
      })
      .catch((error: unknown) => {
        if (error instanceof Refusal && error.isPassing) this.view.offline(null);
      })
      .finally(() => {
        this.loading = null;
        this.catchUp();
      });
    return this.loading;
  }

  /** Seconds until the next message may be sent under the limit of the agent. */
  waitFor(perMinute: number): number {
    const now = Date.now();
    const sent = this.sentTimes().filter((at) => now - at < MINUTE_MS);
    const oldest = sent[sent.length - perMinute];
    return oldest === undefined ? 0 : Math.ceil((oldest + MINUTE_MS - now) / 1000);
  }

  send(text: string, attachments: Attachment[] = []): void {
    if (this.running) {
      this.queue.push({ text, attachments });
      return;
    }
    this.memory.set("sent", JSON.stringify([...this.sentTimes(), Date.now()].slice(-200)));
    this.ask(this.add({ role: "user", text, attachments, state: "sending" }));
  }

  /** Retries a message that was not sent or whose reply was interrupted. */
  again(entry: Entry): void {
    const at = this.entries.indexOf(entry);
    const question = entry.role === "user" ? entry : this.entries[at - 1];
    if (this.running || question?.role !== "user") return;
    if (entry.role === "user") this.remove(entry);
    this.send(question.text, question.attachments);
  }

  async stop(): Promise<void> {
    const running = this.running;
    if (!running) return;
    running.isStopWanted = true;
    const id = running.following?.id;
    // Without an id yet, the reply is stopped as soon as it has one.
    if (id) await this.service.ask(`/api/public/messages/${id}/cancel`, { method: "POST" }).catch(() => undefined);
  }

  /** Starts a new conversation without the messages of this one. */
  reset(): void {
    const next = randomId();
    this.memory.set("next", next);
    this.memory.set("session", null);
    this.memory.set("lead", null);
    this.memory.set("leadToSend", null);
    this.isKnown = true;
    this.clear();
    this.isLoaded = true;
    this.tabs.tell({ kind: "changed", session: null, next });
  }

  async earlier(): Promise<void> {
    const offset = Math.max(0, this.firstOffset - PAGE);
    const answer = await this.page(offset, this.firstOffset - offset);
    this.firstOffset = offset;
    for (const message of parseMessages(answer).reverse()) this.add(message, true);
    this.view.earlier(offset > 0);
  }

  /** Changes metadata of the conversation; before the first message, an email address or a lead is kept for later.
   * Returns whether the change was sent. */
  async patch(change: { rating?: number; feedback?: string; visitorEmail?: string; lead?: Record<string, unknown> }): Promise<boolean> {
    try {
      if (!this.memory.get("session")) throw new Refusal(404, "CONVERSATION_NOT_FOUND", "nothing was said yet");
      const body: Record<string, unknown> = { ...change };
      await this.service.ask(this.service.conversation(this.session()), { method: "PATCH", body });
      this.tabs.tell({ kind: "changed", session: this.session() });
      return true;
    } catch (error) {
      // An answered conversation that is gone was deleted.
      const isGone = this.entries.some(({ role, state }) => role === "assistant" && state === "final");
      if (!(error instanceof Refusal) || error.status !== 404 || (change.lead && isGone)) throw error;
      if (change.visitorEmail) this.memory.set("emailToSend", change.visitorEmail);
      else if (change.lead) this.memory.set("leadToSend", JSON.stringify(change.lead));
      else throw error;
      return false;
    }
  }

  hear(news: TabMessage): void {
    // The first read will return it.
    if (!this.isLoaded && !this.loading) return;
    this.memory.set("session", news.session);
    if (news.kind === "changed" && news.next) this.memory.set("next", news.next);
    if (news.kind === "turn") {
      this.missed.push(news);
      this.shown ??= news.session;
    } else if (news.session !== this.shown) {
      // Running replies belong to a conversation that the visitor has left.
      this.clear();
    }
    // Only the service knows the order of a turn that overlaps another.
    const overlaps = this.running !== null || (news.kind === "turn" && news.at <= this.lastEndedAt);
    this.isBehind ||= news.kind === "changed" || overlaps || news.session !== this.shown;
    this.catchUp();
  }

  end(): void {
    this.running?.stop.abort();
  }

  /** Shows messages of other tabs that were sent while this one was busy, in the order of the service. */
  private catchUp(): void {
    if (this.loading) return;
    if (this.isBehind && !this.running) {
      this.isLoaded = false;
      void this.load();
      return;
    }
    while (!this.running && this.missed[0]) this.join(this.missed.shift() as SentMessage);
  }

  /** Shows a message of another tab and follows its reply. */
  private join({ session, text, attachments = [], at, reply }: SentMessage): void {
    if (session !== this.shown || this.entries.some(({ id }) => id === reply)) return;
    const last = this.entries[this.entries.length - 1];
    const isThere = last?.role === "user" && last.state === "final" && last.text === text && last.attachments[0]?.fileId === attachments[0]?.fileId;
    if (!isThere) this.add({ role: "user", text, attachments, at, state: "final" });
    void this.follow({ id: reply }, null);
  }

  private async read(): Promise<void> {
    const session = this.memory.get("session");
    this.isBehind = false;
    if (!session || session !== this.shown) this.clear();
    this.shown = session;
    if (!session) return;
    let answer: Record<string, unknown>;
    try {
      answer = await this.page(0, PAGE);
      const total = Number(answer.totalMessages);
      this.firstOffset = Math.max(0, total - PAGE);
      if (this.firstOffset > 0) answer = await this.page(this.firstOffset, PAGE);
    } catch (error) {
      // The first message of the session was never accepted, or the session belongs to another visitor.
      if (error instanceof Refusal && error.status === 404) return;
      throw error;
    }
    if (this.running || session !== this.shown) {
      this.isBehind = true;
      return;
    }
    this.replace(parseMessages(answer));
    const metadata = fields(answer.metadata);
    const [rating, email] = [metadata.rating, metadata.visitorEmail];
    this.view.known({
      rating: typeof rating === "number" ? rating : null,
      email: typeof email === "string" ? email : null,
      hasLead: "values" in fields(metadata.lead),
    });
    if (typeof answer.activeMessageId === "string") void this.follow({ id: answer.activeMessageId }, null);
  }

  private replace(messages: ReturnType<typeof parseMessages>): void {
    // The service does not know messages that were not sent.
    const unsent = this.entries.filter(({ state }) => state === "unsent");
    for (const entry of [...this.entries]) this.remove(entry);
    for (const entry of [...messages, ...unsent]) this.add(entry);
    this.view.earlier(this.firstOffset > 0);
  }

  private async page(offset: number, limit: number): Promise<Record<string, unknown>> {
    const path = `${this.service.conversation(this.session())}?limit=${limit}&offset=${offset}`;
    return fields(await (await this.service.ask(path)).json());
  }

  private ask(question: Entry): void {
    const path = `/api/public/agents/${this.service.agent}/chat`;
    const [email, lead] = [this.memory.get("emailToSend"), this.memory.get("leadToSend")];
    this.shown = this.session();
    const kept = { ...(email ? { visitorEmail: email } : {}), ...(lead ? { lead: JSON.parse(lead) as unknown } : {}) };
    const attachments = question.attachments.map(({ fileId }) => ({ fileId }));
    const body = { message: question.text, sessionId: this.shown, ...(attachments[0] ? { attachments } : {}), ...kept };
    // A retried request joins the reply that the first one started.
    const headers = { "Idempotency-Key": randomId() };
    void this.follow({ path, asking: { method: "POST", body, headers } }, question);
  }

  private async follow(begin: ConstructorParameters<typeof FollowedReply>[3], question: Entry | null): Promise<void> {
    const stop = new AbortController();
    const running = { stop, following: null as FollowedReply | null, isStopWanted: false };
    this.running = running;
    this.view.busy(true);
    const id = "id" in begin ? begin.id : null;
    const reply = this.add({ role: "assistant", id, text: "", state: "waiting" });
    const change = (changes: Partial<Entry>) => this.change(reply, changes);
    const sink = {
      begun: (id: string) => {
        change({ id });
        if (question) this.sent(question, id);
        if (running.isStopWanted) void this.stop();
      },
      text: (text: string) => change({ text, state: text ? "running" : "waiting" }),
      cards: (cards: unknown) => change({ cards }),
      tool: (isWorking: boolean) => reply.isWorking !== isWorking && change({ isWorking }),
      connection: (isLost: boolean) => reply.isLost !== isLost && change({ isLost }),
    };
    running.following = new FollowedReply(this.service, sink, stop.signal, begin);
    try {
      const outcome: Outcome = await running.following.run();
      if (stop.signal.aborted) return;
      const state = outcome === "cancelled" ? "stopped" : "final";
      change({ state, isShortened: outcome === "shortened", isWorking: false, isLost: false });
    } catch (error) {
      if (stop.signal.aborted) return;
      if (question && this.withdraws(error)) {
        this.remove(reply);
        return this.ask(question);
      }
      this.failed(reply, question, error);
    }
    this.running = null;
    this.lastEndedAt = Date.now();
    this.view.busy(false);
    if (this.entries.includes(reply)) this.view.finished(reply);
    const next = this.queue.shift();
    if (next) this.send(next.text, next.attachments);
    else this.catchUp();
  }

  /** Withdraws a rejected email address or lead. Returns whether the message is sent without it. */
  private withdraws(error: unknown): boolean {
    const param = error instanceof Refusal ? error.param : "";
    if (param === "visitorEmail") {
      const email = this.memory.get("emailToSend");
      this.memory.set("emailToSend", null);
      this.view.refusedEmail(email ?? "");
      return true;
    }
    const lead = this.memory.get("leadToSend");
    if (!lead || !/^lead(\.|$)/.test(param)) return false;
    this.memory.set("leadToSend", null);
    // The agent no longer asks for a lead.
    if (param === "lead") {
      this.memory.set("lead", null);
      return true;
    }
    this.view.refusedLead(JSON.parse(lead) as Record<string, string>, param);
    return false;
  }

  private sent(question: Entry, reply: string): void {
    this.change(question, { state: "final" });
    this.memory.set("emailToSend", null);
    const lead = this.memory.get("leadToSend");
    this.memory.set("leadToSend", null);
    if (lead) this.view.sentLead(JSON.parse(lead) as Record<string, unknown>);
    this.tabs.tell({ kind: "turn", session: this.shown ?? this.session(), text: question.text, attachments: question.attachments, at: question.at, reply });
  }

  private failed(reply: Entry, question: Entry | null, error: unknown): void {
    const refusal = error instanceof Refusal ? error : new Refusal(0, "", String(error));
    if (reply.id) {
      this.change(reply, { state: "broken", isWorking: false, isLost: false });
      this.view.failed(reply, refusal);
      return;
    }
    this.remove(reply);
    // Queued messages would fail as well; the visitor sends them again.
    const behind = this.queue.splice(0).map((queued) => this.add({ role: "user", ...queued, state: "unsent" }));
    if (question && refusal.param.startsWith("attachments")) {
      this.remove(question);
      this.view.refusedFiles(question, refusal);
      question = null;
    }
    for (const entry of question ? [question, ...behind] : behind) {
      this.change(entry, { state: "unsent", waitS: refusal.status === 429 ? refusal.retryAfterS : 0 });
      this.view.failed(entry, refusal);
    }
    if (refusal.code === "AGENT_INACTIVE") this.view.offline(String(refusal.details.offlineMessage ?? ""));
    else if (refusal.isPassing) this.view.offline(null);
  }

  session(): string {
    const known = this.memory.get("session");
    if (known) return known;
    // The first conversation is named after the visitor, so that simultaneous first messages of two tabs share it.
    const session = this.memory.get("next") ?? this.service.visitor ?? randomId();
    this.memory.set("session", session);
    return session;
  }

  private sentTimes(): number[] {
    try {
      const times: unknown = JSON.parse(this.memory.get("sent") ?? "[]");
      return Array.isArray(times) ? times.filter((time) => typeof time === "number") : [];
    } catch {
      return [];
    }
  }

  private add(known: Partial<Entry> & Pick<Entry, "role" | "text" | "state">, first = false): Entry {
    const flags = { isWorking: false, isLost: false, isShortened: false };
    const entry: Entry = { id: null, attachments: [], at: Date.now(), cards: null, waitS: 0, ...flags, ...known };
    if (first) this.entries.unshift(entry);
    else this.entries.push(entry);
    this.view.added(entry, first);
    return entry;
  }

  private change(entry: Entry, changes: Partial<Entry>): void {
    Object.assign(entry, changes);
    this.view.changed(entry);
  }

  private remove(entry: Entry): void {
    const at = this.entries.indexOf(entry);
    if (at >= 0) this.entries.splice(at, 1);
    this.view.removed(entry);
  }

  private clear(): void {
    this.running?.stop.abort();
    if (this.running) this.view.busy(false);
    this.running = null;
    this.shown = null;
    this.queue.length = 0;
    for (const entry of [...this.entries]) this.remove(entry);
    this.view.earlier(false);
    this.view.known({ rating: null, email: null, hasLead: false });
  }
}

function parseMessages(answer: Record<string, unknown>): (Pick<Entry, "role" | "text" | "state"> & Partial<Entry>)[] {
  const messages = Array.isArray(answer.messages) ? answer.messages.map(fields) : [];
  return messages.map((message) => {
    const state = message.status === "cancelled" ? "stopped" : message.status === "incomplete" ? "broken" : "final";
    return {
      role: message.role === "user" ? "user" : "assistant",
      id: String(message.id),
      text: String(message.content),
      attachments: parseAttachments(message.attachments),
      at: Date.parse(String(message.timestamp)) || Date.now(),
      state,
      cards: message.uiSpec ?? null,
    };
  });
}

function parseAttachments(value: unknown): Attachment[] {
  const files = Array.isArray(value) ? value.map(fields) : [];
  return files.map(({ fileId, name, mimeType, bytes }) => ({
    fileId: String(fileId),
    name: String(name),
    mimeType: String(mimeType),
    bytes: Number(bytes),
  }));
}
