// Chats through the public API, as a visitor's page does it: what is tried here is what visitors get.
import { ask, call, problemOf } from './client';
import { PUBLIC_ORIGIN } from './public-origin';
import type { UiSpec } from './types';

export interface StartEvent {
  type: 'start';
  messageId: string;
  conversationId: string;
  agentId: string;
  agentName: string;
  routingReason?: string | null;
  model?: string | null;
}

export type ChatEvent =
  | StartEvent
  | { type: 'delta'; text: string; offset: number }
  | { type: 'ui'; spec: UiSpec }
  | { type: 'tool'; name: string; status: 'started' | 'finished' | 'failed' }
  | {
      type: 'done';
      status: string;
      finishReason?: string | null;
      usage?: { promptTokens?: number; completionTokens?: number } | null;
    }
  | { type: 'error'; detail: string };

export interface VisitorToken {
  token: string;
  expiresAt: string;
  offline?: { name: string; offlineMessage: string };
}

/** A token of one visitor of this page; it chats with this agent and does nothing else. */
export function visitorToken(agentId: string): Promise<VisitorToken> {
  return call<VisitorToken>('POST', `${PUBLIC_ORIGIN}/api/widget/token`, { body: { agentId } });
}

/** Sends a message to `agents/{id}` or `teams/{id}` and gives the events of its reply. */
export async function* chat(
  target: string,
  bearer: string,
  body: { message: string; sessionId: string },
  signal: AbortSignal,
): AsyncGenerator<ChatEvent> {
  const response = await ask(`${PUBLIC_ORIGIN}/api/public/${target}/chat`, {
    method: 'POST',
    signal,
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      authorization: `Bearer ${bearer}`,
    },
    body: JSON.stringify(body),
  });
  if (!response.ok || response.body === null) throw await problemOf(response);
  yield* eventsOf(response.body);
}

export async function cancel(messageId: string, bearer: string): Promise<void> {
  await ask(`${PUBLIC_ORIGIN}/api/public/messages/${encodeURIComponent(messageId)}/cancel`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}` },
  });
}

async function* eventsOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<ChatEvent> {
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
    // Leaving early must not leave the connection open.
    await reader.cancel().catch(() => undefined);
  }
}

/** One block of the stream; comments, which only keep it alive, are none. */
function eventOf(block: string): ChatEvent | undefined {
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
      return { type: 'error', detail: String(read['detail'] ?? read['title'] ?? 'the reply broke off') };
    case 'start':
    case 'delta':
    case 'tool':
    case 'done':
      return { ...read, type: name } as ChatEvent;
    default:
      return undefined;
  }
}
