// Speaks with the service: trades the agent's id, or a chat key, for a visitor's token, renews it before it ends, and
// turns every refusal into one kind of error.

import { type Memory } from "./memory.ts";
import { fields, readSettings, type Settings } from "./settings.ts";

/** Before its end a token is as good as over: a request takes a while, and clocks differ. */
const RENEW_BEFORE_MS = 60_000;
/** After this a request that was not answered counts as lost. */
const ANSWER_TIMEOUT_MS = 20_000;

/** An answer that is a refusal; without a status nobody answered. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfterS = 0,
    readonly details: Record<string, unknown> = {},
    readonly param = "",
  ) {
    super(message);
  }

  /** Whether the same request may succeed later without anybody's doing. */
  get isPassing(): boolean {
    // A reply that has come to an end will not come to another one.
    if (this.details.status !== undefined) return false;
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

interface Token {
  text: string;
  endsAt: number;
}

export interface Asking {
  method?: "GET" | "POST" | "PATCH";
  body?: Record<string, unknown>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export class Service {
  private token: Token | null = null;
  private renewal: Promise<Settings> | null = null;

  constructor(
    readonly base: string,
    readonly agent: string,
    private readonly key: string | null,
    private readonly memory: Memory,
    private readonly onSettings: (settings: Settings) => void,
  ) {}

  /** Gets a token and what the widget looks like. */
  start(): Promise<Settings> {
    // Two requests that find the token old share one renewal.
    this.renewal ??= this.oneTabAtATime(() => this.trade()).finally(() => {
      this.renewal = null;
    });
    return this.renewal;
  }

  /** Path of this agent's conversation. */
  conversation(session: string): string {
    return `/api/public/agents/${this.agent}/conversations/${session}`;
  }

  /** An answer that is no refusal. */
  async ask(path: string, asking: Asking = {}): Promise<Response> {
    if (!this.token || this.token.endsAt - Date.now() < RENEW_BEFORE_MS) await this.start();
    try {
      return await this.send(path, asking);
    } catch (error) {
      // The page may have slept past the token's end, or the service forgotten it.
      if (!(error instanceof Refusal) || error.status !== 401) throw error;
      await this.start();
      return this.send(path, asking);
    }
  }

  private send(path: string, { method = "GET", body, headers = {}, signal }: Asking): Promise<Response> {
    const all: Record<string, string> = { ...headers, Authorization: `Bearer ${this.token?.text}` };
    return fetchAnswer(this.base + path, method, body, all, signal);
  }

  private async trade(): Promise<Settings> {
    const secret = this.memory.get("secret");
    try {
      return await this.tradeWith(secret);
    } catch (error) {
      if (!secret || !(error instanceof Refusal) || error.status !== 400) throw error;
      // A secret that is no longer good: the visitor comes as a new one, whose sessions are others.
      this.memory.set("secret", null);
      return this.tradeWith(null);
    }
  }

  private async tradeWith(secret: string | null): Promise<Settings> {
    const body = { agentId: this.agent, ...(secret ? { visitorSecret: secret } : {}) };
    const headers: Record<string, string> = this.key ? { Authorization: `Bearer ${this.key}` } : {};
    const answer = fields(await (await fetchAnswer(`${this.base}/api/widget/token`, "POST", body, headers)).json());
    this.token = { text: String(answer.token), endsAt: Date.parse(String(answer.expiresAt)) };
    this.memory.set("secret", String(answer.visitorSecret));
    const settings = readSettings(answer);
    this.onSettings(settings);
    return settings;
  }

  /** Or two tabs that open together would be two visitors, of whom the storage keeps one. */
  private async oneTabAtATime<T>(work: () => Promise<T>): Promise<T> {
    let begun: Promise<T> | null = null;
    const begin = () => (begun ??= work());
    try {
      // Absent on pages without TLS, and refused where storage is blocked.
      return (await navigator.locks.request(`switchboard:${this.agent}`, begin)) as T;
    } catch {
      return begin();
    }
  }
}

async function fetchAnswer(
  url: string,
  method: string,
  body: unknown,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<Response> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), ANSWER_TIMEOUT_MS);
  const stop = () => silence.abort();
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  let response: Response;
  try {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const type = body === undefined ? {} : { "Content-Type": "application/json" };
    const options = { method, headers: { ...type, ...headers }, credentials: "omit", cache: "no-store" } as const;
    response = await fetch(url, { ...options, ...content, signal: silence.signal });
  } catch {
    throw new Refusal(0, "", "the service cannot be reached");
  } finally {
    // The signal still ends a body that is being read.
    clearTimeout(timer);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response: Response): Promise<Refusal> {
  const problem = fields(await response.json().catch(() => null));
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const text = (name: string) => (typeof problem[name] === "string" ? (problem[name] as string) : "");
  const detail = text("detail") || `the service answered ${response.status}`;
  return new Refusal(response.status, text("code"), detail, retryAfter, fields(problem.details), text("param"));
}
