// Conversations, exports and erasures.
import { infiniteQueryOptions, type QueryClient, queryOptions } from '@tanstack/react-query';
import { call, Problem } from './client';
import type {
  Conversation,
  ConversationSummary,
  CursorPage,
  Erasure,
  ListedConversation,
  Message,
  Page,
} from './types';

export interface ConversationFilter {
  agent?: string;
  team?: string;
  since?: string;
  until?: string;
  minRating?: number;
  maxRating?: number;
  visitor?: string;
  /** Words that occur in the messages. */
  text?: string;
}

/** Visitor of an erasure; either field finds the conversations. */
export interface Visitor {
  visitorId?: string;
  visitorEmail?: string;
}

const LIST_PAGE = 50;
const MESSAGES_PAGE = 200;
/** Messages reread on each poll, because their turn may have ended since. */
const READ_AGAIN = 4;
const LOOK_EVERY_MS = 2_000;
const LOOK_EVERY_WHILE_ANSWERED_MS = 700;
const ERASURES_SHOWN = 50;
const ERASE_AGAIN_MS = 1_000;

export function conversationsQuery(org: string, filter: ConversationFilter) {
  return infiniteQueryOptions({
    queryKey: [org, 'conversations', 'list', filter] as const,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...filter, limit: LIST_PAGE, cursor: pageParam };
      return call<CursorPage<ListedConversation>>('GET', listPath(org), { query, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: CursorPage<ListedConversation>) => page.nextCursor ?? undefined,
    refetchInterval: 10_000,
  });
}

/** Query that polls a conversation while it is open; only the latest messages are reread. */
export function conversationQuery(client: QueryClient, org: string, id: string) {
  const queryKey = [org, 'conversations', 'one', id] as const;
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Conversation> => {
      const known = client.getQueryData<Conversation>(queryKey)?.messages ?? [];
      const messages = known.slice(0, Math.max(0, known.length - READ_AGAIN));
      const path = onePath(org, id);
      for (;;) {
        const query = { limit: MESSAGES_PAGE, offset: messages.length };
        type Read = ConversationSummary & { messages: Page<Message> };
        const page = await call<Read>('GET', path, { query, signal });
        messages.push(...page.messages.items);
        if (!page.messages.hasMore) return { ...page, messages };
      }
    },
    refetchInterval: ({ state }) => {
      if (isGone(state.error)) return false;
      return state.data?.activeMessageId ? LOOK_EVERY_WHILE_ANSWERED_MS : LOOK_EVERY_MS;
    },
  });
}

/** Returns whether the error means that the conversation does not exist. */
export function isGone(error: unknown): boolean {
  return error instanceof Problem && error.status === 404;
}

/** Address of the event stream of a running reply. */
export function livePath(org: string, id: string, message: string): string {
  return `${onePath(org, id)}/messages/${encodeURIComponent(message)}/stream`;
}

/** Address of the export of filtered conversations. */
export function exportPath(org: string, filter: ConversationFilter, format: 'csv' | 'jsonl'): string {
  const wanted = new URLSearchParams({ format });
  for (const [name, value] of Object.entries(filter)) wanted.set(name, String(value));
  return `${listPath(org)}/export?${wanted}`;
}

/** Deletes a conversation; the response reports whether its worker still has to do it. */
export function deleteConversation(org: string, id: string): Promise<{ state: 'accepted' } | undefined> {
  return call('DELETE', onePath(org, id));
}

export function erasuresQuery(org: string) {
  return queryOptions({
    queryKey: [org, 'erasures'] as const,
    queryFn: ({ signal }) =>
      call<CursorPage<Erasure>>('GET', erasuresPath(org), { query: { limit: ERASURES_SHOWN }, signal }),
  });
}

/** Erases a visitor. A request works for a limited time, so this sends as many as needed. */
export async function eraseVisitor(
  org: string,
  visitor: Visitor,
  onStep: (erasure: Erasure) => void,
): Promise<Erasure> {
  let erasure = await call<Erasure>('POST', erasuresPath(org), { body: visitor });
  onStep(erasure);
  while (erasure.state === 'running') {
    const before = erasure.lookedAt;
    erasure = await call<Erasure>('POST', `${erasuresPath(org)}/${erasure.id}`, { body: visitor });
    onStep(erasure);
    // Still running without progress: wait before the next request.
    if (erasure.lookedAt === before) await new Promise((resolve) => setTimeout(resolve, ERASE_AGAIN_MS));
  }
  return erasure;
}

function listPath(org: string): string {
  return `/api/admin/organizations/${org}/conversations`;
}

function onePath(org: string, id: string): string {
  return `${listPath(org)}/${encodeURIComponent(id)}`;
}

function erasuresPath(org: string): string {
  return `/api/admin/organizations/${org}/erasures`;
}
