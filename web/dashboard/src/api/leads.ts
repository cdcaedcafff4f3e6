// Leads: contact details that visitors left, each with its conversation.
import { infiniteQueryOptions } from '@tanstack/react-query';
import { call } from './client';
import type { CapturedLead, CursorPage } from './types';

export interface Lead {
  conversationId: string;
  agentId: string | null;
  teamId: string | null;
  lead: CapturedLead;
}

export interface LeadFilter {
  agent?: string;
  team?: string;
  since?: string;
  until?: string;
  /** Part of a value. */
  search?: string;
}

const LIST_PAGE = 50;

function path(org: string): string {
  return `/api/admin/organizations/${org}/leads`;
}

export function leadsQuery(org: string, filter: LeadFilter) {
  return infiniteQueryOptions({
    queryKey: [org, 'leads', filter] as const,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...filter, limit: LIST_PAGE, cursor: pageParam };
      return call<CursorPage<Lead>>('GET', path(org), { query, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: CursorPage<Lead>) => page.nextCursor ?? undefined,
  });
}

/** Address of the export of filtered leads. */
export function leadsExportPath(org: string, filter: LeadFilter, format: 'csv' | 'jsonl'): string {
  return `${path(org)}?${new URLSearchParams({ ...filter, format })}`;
}
