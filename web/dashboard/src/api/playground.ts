// Playground runs of agents and routing tests of teams. They pass through the same workers as messages of visitors,
// but nothing is stored, so each run sends its history.
import { providerWords } from '../provider-words';
import type { components } from './admin-api';
import { ask, call, problemOf } from './client';
import type { UiSpec } from './types';

type Schemas = components['schemas'];

export type PlaygroundEvent =
  | { type: 'start'; agentName: string; model?: string | null }
  | { type: 'delta'; text: string; offset: number }
  | { type: 'ui'; spec: UiSpec }
  | { type: 'tool'; name: string; status: 'started' | 'finished' | 'failed' }
  | {
      type: 'done';
      status: string;
      finishReason?: string | null;
      usage?: { promptTokens?: number; completionTokens?: number } | null;
      responseTime?: number;
    }
  | { type: 'error'; detail: string };

export type HistoryMessage = Schemas['EarlierMessage'];
/** Body of a run; its draft is a patch of the saved resource. */
export type PlaygroundRunRequest = Schemas['PlaygroundRunRequest'];

/** Maximum messages of the history. */
export const HISTORY_MAX = 40;

function path(org: string, kind: 'agents' | 'teams', id: string): string {
  return `/api/admin/organizations/${org}/${kind}/${encodeURIComponent(id)}/try`;
}

/** Yields the events of a reply. Aborting stops the model. */
export async function* runAgent(
  org: string,
  id: string,
  request: PlaygroundRunRequest,
  signal: AbortSignal,
): AsyncGenerator<PlaygroundEvent> {
  const response = await ask(path(org, 'agents', id), {
    method: 'POST',
    signal,
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify(request),
  });
  if (!response.ok || response.body === null) throw await problemOf(response);
  yield* eventsOf(response.body);
}

export type AgentReference = Schemas['AgentReference'];
export type RoutingVerdict = Schemas['PlaygroundRoutingView'];

export function testRouting(org: string, id: string, request: PlaygroundRunRequest): Promise<RoutingVerdict> {
  return call<RoutingVerdict>('POST', path(org, 'teams', id), { body: request });
}

async function* eventsOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<PlaygroundEvent> {
  const reader = body.pipeThrough<string>(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const event = eventOf(text.slice(0, end));
        text = text.slice(end + 2);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    // Closes the connection if the consumer stops early.
    await reader.cancel().catch(() => undefined);
  }
}

/** Returns an error in words, with those of the model provider if it is the cause. */
function errorWords(read: Record<string, unknown>): string {
  const detail = String(read['detail'] ?? read['title'] ?? 'the reply was interrupted');
  const { providerError } = (read['details'] ?? {}) as { providerError?: Parameters<typeof providerWords>[0] };
  return providerError === undefined ? detail : `${detail}. The provider said: ${providerWords(providerError)}`;
}

/** Parses one block of the stream; returns nothing for comments. */
function eventOf(block: string): PlaygroundEvent | undefined {
  let name = '';
  let data = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) name = line.slice('event:'.length).trim();
    if (line.startsWith('data:')) data += line.slice('data:'.length).trimStart();
  }
  if (data === '') return undefined;
  const read = JSON.parse(data) as Record<string, unknown>;
  switch (name) {
    case 'ui':
      return { type: 'ui', spec: read as unknown as UiSpec };
    case 'error':
      return { type: 'error', detail: errorWords(read) };
    case 'start':
    case 'delta':
    case 'tool':
    case 'done':
      return { ...read, type: name } as PlaygroundEvent;
    default:
      return undefined;
  }
}
