// Follows one reply to its end over as many connections as needed. Texts of two generations are never
// concatenated: when the service starts a new generation, the text starts again.

import { type RequestOptions, Refusal, type Service } from "./service.ts";
import { fields } from "./settings.ts";
import { readEvents, type ServerEvent } from "./sse.ts";

export interface ReplySink {
  /** The reply has an id; a reloaded page or another tab can follow it. */
  begun(id: string): void;
  /** All of the text so far. */
  text(text: string): void;
  cards(spec: unknown): void;
  /** A tool call started or ended. */
  tool(isRunning: boolean): void;
  /** The connection was lost, or restored. */
  connection(isLost: boolean): void;
}

export type Outcome = "completed" | "shortened" | "cancelled";

const RETRIES_MAX = 8;
const RETRY_FIRST_MS = 400;
const RETRY_MAX_MS = 10_000;
const RESTARTED = "REPLY_RESTARTED";

/** A reply that is followed from the request `asking`, or from its first byte if its id is known. */
export class FollowedReply {
  id: string;
  private position = "";
  private text = "";
  private offset = 0;

  constructor(
    private readonly service: Service,
    private readonly sink: ReplySink,
    private readonly signal: AbortSignal,
    private readonly begin: { id: string } | { path: string; asking: RequestOptions },
  ) {
    this.id = "id" in begin ? begin.id : "";
  }

  /** Reads to the end; throws a `Refusal` if there is no reply. */
  async run(): Promise<Outcome> {
    for (let failures = 0; ; failures += 1) {
      const before = this.offset;
      try {
        const outcome = await this.connection();
        if (outcome) return outcome;
      } catch (error) {
        if (this.signal.aborted) throw error;
        if (error instanceof Refusal && error.code === RESTARTED) this.restart();
        else if (error instanceof Refusal && !error.isPassing) throw error;
        else if (failures >= RETRIES_MAX) throw error;
      }
      // Received text shows that retrying helps.
      if (this.offset !== before) failures = 0;
      this.sink.connection(true);
      await sleep(Math.min(RETRY_FIRST_MS * 2 ** failures, RETRY_MAX_MS), this.signal);
    }
  }

  /** Reads one connection; returns the end of the reply, or nothing if it was interrupted before. */
  private async connection(): Promise<Outcome | null> {
    const response = await this.open();
    this.sink.connection(false);
    if (!this.id) this.name(response.headers.get("X-Message-Id") ?? "");
    for await (const event of readEvents(response)) {
      const outcome = this.take(event);
      if (outcome) return outcome;
    }
    return null;
  }

  private open(): Promise<Response> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (!this.id && "path" in this.begin) {
      const { path, asking } = this.begin;
      return this.service.ask(path, { ...asking, headers: { ...headers, ...asking.headers }, signal: this.signal });
    }
    if (this.position) headers["Last-Event-ID"] = this.position;
    return this.service.ask(`/api/public/messages/${this.id}/stream`, { headers, signal: this.signal });
  }

  private name(id: string): void {
    if (!id || id === this.id) return;
    this.id = id;
    this.sink.begun(id);
  }

  private take(event: ServerEvent): Outcome | null {
    const data = fields(JSON.parse(event.data));
    switch (event.name) {
      case "start":
        this.name(String(data.messageId));
        this.keepGeneration(event.id);
        break;
      case "delta":
        this.keepGeneration(event.id);
        this.append(String(data.text), Number(data.offset));
        this.position = event.id;
        break;
      case "ui":
        this.sink.cards(data);
        break;
      case "tool":
        this.sink.tool(data.status === "started");
        break;
      case "done":
        if (data.status === "cancelled") return "cancelled";
        return data.finishReason === "length" ? "shortened" : "completed";
      case "error":
        throw new Refusal(Number(data.status), String(data.code), String(data.detail), 0, fields(data.details));
    }
    return null;
  }

  private keepGeneration(id: string): void {
    const generation = (position: string) => position.split(".")[0];
    if (this.position && generation(id) !== generation(this.position)) this.restart();
  }

  private append(text: string, offset: number): void {
    // Skips text that was read already: the service may resume one character earlier.
    const known = offset < this.offset ? truncateBytes(this.text, offset) : this.text;
    this.text = known + text;
    this.offset = offset + new TextEncoder().encode(text).length;
    this.sink.tool(false);
    this.sink.text(this.text);
  }

  private restart(): void {
    this.position = "";
    this.text = "";
    this.offset = 0;
    this.sink.text("");
  }
}

function truncateBytes(text: string, bytes: number): string {
  return new TextDecoder().decode(new TextEncoder().encode(text).slice(0, bytes));
}

/** Waits for this time, or until the network is back. */
function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      removeEventListener("online", over);
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, milliseconds * (0.75 + Math.random() / 2));
    addEventListener("online", over);
    signal.addEventListener("abort", over);
  });
}
