// Client of the service: exchanges the agent id, or a chat key, for a visitor token, renews it before it expires, and
// turns every error response into one type.

import type { Memory } from "./memory.ts";
import { fields, readSettings, type Settings } from "./settings.ts";

/** A token is renewed this long before it expires, because requests take time and clocks differ. */
const RENEW_BEFORE_MS = 60_000;
/** Timeout of a request. */
const ANSWER_TIMEOUT_MS = 20_000;

/** Error response of the service; without a status, there was no response. */
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

  /** The same request may succeed later. */
  get isPassing(): boolean {
    // A reply that has ended will not end differently.
    if (this.details.status !== undefined) return false;
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

interface Token {
  text: string;
  endsAt: number;
}

export interface RequestOptions {
  method?: "GET" | "POST" | "PATCH";
  body?: Record<string, unknown>;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export class Service {
  /** Id of the visitor, which all tabs share; `null` until there is a token. */
  visitor: string | null = null;
  private token: Token | null = null;
  private renewal: Promise<Settings> | null = null;

  constructor(
    readonly base: string,
    readonly agent: string,
    private readonly key: string | null,
    private readonly memory: Memory,
    private readonly onSettings: (settings: Settings) => void,
  ) {}

  /** Requests a token and the settings of the widget. */
  start(): Promise<Settings> {
    // Concurrent requests with an old token share one renewal.
    this.renewal ??= this.oneTabAtATime(() => this.trade()).finally(() => {
      this.renewal = null;
    });
    return this.renewal;
  }

  /** Path of the conversation with this agent. */
  conversation(session: string): string {
    return `/api/public/agents/${this.agent}/conversations/${session}`;
  }

  /** Returns a successful response; throws a `Refusal` otherwise. */
  ask(path: string, { method = "GET", body, headers = {}, signal }: RequestOptions = {}): Promise<Response> {
    return this.authorized((Authorization) => fetchResponse(this.base + path, method, body, { ...headers, Authorization }, signal));
  }

  /** Returns the successful response of a request with the token; throws a `Refusal` otherwise. */
  async authorized(send: (authorization: string) => Promise<Response>): Promise<Response> {
    const attempt = async () => checked(await send(`Bearer ${this.token?.text}`));
    if (!this.token || this.token.endsAt - Date.now() < RENEW_BEFORE_MS) await this.start();
    try {
      return await attempt();
    } catch (error) {
      // The page may have slept until the token expired, or the service may have been reset.
      if (!(error instanceof Refusal) || error.status !== 401) throw error;
      await this.start();
      return attempt();
    }
  }

  private async trade(): Promise<Settings> {
    const secret = this.memory.get("secret");
    try {
      return await this.tradeWith(secret);
    } catch (error) {
      if (!secret || !(error instanceof Refusal) || error.status !== 400) throw error;
      // The secret is no longer valid: the visitor continues as a new one with other sessions.
      this.memory.set("secret", null);
      return this.tradeWith(null);
    }
  }

  private async tradeWith(secret: string | null): Promise<Settings> {
    const body = { agentId: this.agent, ...(secret ? { visitorSecret: secret } : {}) };
    const headers: Record<string, string> = this.key ? { Authorization: `Bearer ${this.key}` } : {};
    const answer = fields(await (await checked(await fetchResponse(`${this.base}/api/widget/token`, "POST", body, headers))).json());
    this.token = { text: String(answer.token), endsAt: Date.parse(String(answer.expiresAt)) };
    this.memory.set("secret", String(answer.visitorSecret));
    this.visitor = typeof answer.visitorId === "string" ? answer.visitorId : null;
    const settings = readSettings(answer);
    this.onSettings(settings);
    return settings;
  }

  /** Serializes token requests, so that two tabs opened together do not become two visitors. */
  private async oneTabAtATime<T>(work: () => Promise<T>): Promise<T> {
    let begun: Promise<T> | null = null;
    const begin = () => (begun ??= work());
    try {
      // Missing on pages without TLS, and denied if storage is blocked.
      return (await navigator.locks.request(`switchboard:${this.agent}`, begin)) as T;
    } catch {
      return begin();
    }
  }
}

async function fetchResponse(
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
  try {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const type = body === undefined ? {} : { "Content-Type": "application/json" };
    const options = { method, headers: { ...type, ...headers }, credentials: "omit", cache: "no-store" } as const;
    return await fetch(url, { ...options, ...content, signal: silence.signal });
  } catch {
    throw new Refusal(0, "", "the service cannot be reached");
  } finally {
    // The signal still aborts reading the body.
    clearTimeout(timer);
  }
}

/** Throws a `Refusal` unless the response is successful. */
async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const problem = fields(await response.json().catch(() => null));
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const text = (name: string) => (typeof problem[name] === "string" ? (problem[name] as string) : "");
  const detail = text("detail") || `the service answered ${response.status}`;
  throw new Refusal(response.status, text("code"), detail, retryAfter, fields(problem.details), text("param"));
}
