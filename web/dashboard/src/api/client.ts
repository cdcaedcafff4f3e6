// HTTP client of the admin API. Every error response is a problem object.

export interface RequestOptions {
  body?: unknown;
  query?: Record<string, string | number | boolean | undefined>;
  /** Version that the change applies to. */
  ifMatch?: string;
  signal?: AbortSignal;
}

interface ProblemBody {
  title?: string;
  detail?: string;
  code?: string;
  param?: string;
  details?: Record<string, unknown>;
  requestId?: string;
}

/** Error response of the service. */
export class Problem extends Error {
  readonly code: string | undefined;
  /** Invalid field. */
  readonly param: string | undefined;
  readonly details: Record<string, unknown>;
  readonly requestId: string | undefined;

  constructor(
    readonly status: number,
    body: ProblemBody,
    readonly retryAfterSeconds?: number,
  ) {
    super(body.detail ?? body.title ?? `the service answered ${status}`);
    this.code = body.code;
    this.param = body.param;
    this.details = body.details ?? {};
    this.requestId = body.requestId;
  }
}

/** Returns the error of a field. */
export function findFieldError(error: unknown, field: string): string | undefined {
  return error instanceof Problem && error.param === field ? error.message : undefined;
}

/** A reply that did not complete, with the reason of the service. */
export class ReplyFailure extends Error {}

/** The service is unreachable. */
export class Unreachable extends Error {
  constructor() {
    super('the service cannot be reached');
  }
}

export async function call<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
  const headers: Record<string, string> = {};
  if (options.body !== undefined) headers['content-type'] = 'application/json';
  if (options.ifMatch !== undefined) headers['if-match'] = `"${options.ifMatch}"`;
  // Lets the deletion finish although the page is left.
  const init: RequestInit = { method, headers, keepalive: method === 'DELETE' };
  if (options.body !== undefined) init.body = JSON.stringify(options.body);
  if (options.signal !== undefined) init.signal = options.signal;
  const response = await ask(path + queryText(options.query), init);
  if (!response.ok) throw await problemOf(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** Sends a request; distinguishes an unreachable service from an aborted request. */
export async function ask(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Unreachable();
  }
}

export async function problemOf(response: Response): Promise<Problem> {
  const body = (await response.json().catch(() => ({}))) as ProblemBody;
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new Problem(response.status, body, Number.isFinite(retryAfter) ? retryAfter : undefined);
}

function queryText(query: RequestOptions['query']): string {
  const wanted = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== '') wanted.set(name, String(value));
  }
  const text = wanted.toString();
  return text === '' ? '' : `?${text}`;
}
