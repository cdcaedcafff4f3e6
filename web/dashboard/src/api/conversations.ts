// What visitors and agents said.
import { infiniteQueryOptions, type QueryClient, queryOptions } from '@tanstack/react-query';
import { call } from './client';
import type { Conversation, ConversationSummary, CursorPage, Message, Page } from './types';

export interface ConversationFilter {
  agent?: string;
  team?: string;
  since?: string;
  until?: string;
  minRating?: number;
  maxRating?: number;
  visitorId?: string;
  visitorEmail?: string;
}

const LIST_PAGE = 50;
const MESSAGES_PAGE = 200;
/** Messages that are read again with each look, because their turn may have ended since. */
const READ_AGAIN = 4;
const LOOK_EVERY_MS = 2_000;
const LOOK_EVERY_WHILE_ANSWERED_MS = 700;

export function conversationsQuery(org: string, filter: ConversationFilter) {
  return infiniteQueryOptions({
    queryKey: [org, 'conversations', 'list', filter] as const,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...filter, limit: LIST_PAGE, cursor: pageParam };
      const path = `/api/admin/organizations/${org}/conversations`;
      return call<CursorPage<ConversationSummary>>('GET', path, { query, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: CursorPage<ConversationSummary>) => page.nextCursor ?? undefined,
    refetchInterval: 10_000,
  });
}

/** One conversation, read again and again while it is open; only its end is read anew. */
export function conversationQuery(client: QueryClient, org: string, id: string) {
  const queryKey = [org, 'conversations', 'one', id] as const;
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }): Promise<Conversation> => {
      const known = client.getQueryData<Conversation>(queryKey)?.messages ?? [];
      const messages = known.slice(0, Math.max(0, known.length - READ_AGAIN));
      const path = `/api/admin/organizations/${org}/conversations/${encodeURIComponent(id)}`;
      for (;;) {
        const query = { limit: MESSAGES_PAGE, offset: messages.length };
        type Read = ConversationSummary & { messages: Page<Message> };
        const page = await call<Read>('GET', path, { query, signal });
        messages.push(...page.messages.items);
        if (!page.messages.hasMore) return { ...page, messages };
      }
    },
    refetchInterval: (query) => (query.state.data?.activeMessageId ? LOOK_EVERY_WHILE_ANSWERED_MS : LOOK_EVERY_MS),
  });
}
