// Users of the organization and its audit log.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { components } from './admin-api';
import { call } from './client';
import type { AuditEntry, CursorPage, Page, Role, User } from './types';

const PAGE_MAX = 200;
const AUDIT_PAGE = 50;

/** One-time link, contained only in the response that creates it. */
export type WithLink = Pick<components['schemas']['LinkedUserView'], 'link'>;

const users = (org: string, id?: string) =>
  `/api/admin/organizations/${org}/users${id === undefined ? '' : `/${encodeURIComponent(id)}`}`;

export function usersQuery(org: string) {
  return queryOptions({
    queryKey: [org, 'users'] as const,
    queryFn: async ({ signal }): Promise<User[]> => {
      const items: User[] = [];
      for (;;) {
        const query = { limit: PAGE_MAX, offset: items.length };
        const page = await call<Page<User>>('GET', users(org), { query, signal });
        items.push(...page.items);
        if (!page.hasMore) return items;
      }
    },
  });
}

export function invite(org: string, person: { email: string; name?: string; role: Role }): Promise<User & WithLink> {
  return call<User & WithLink>('POST', users(org), { body: person });
}

export function changeUser(
  org: string,
  id: string,
  changes: Partial<Pick<User, 'name' | 'role' | 'state'>>,
): Promise<User> {
  return call<User>('PATCH', users(org, id), { body: changes });
}

export function removeUser(org: string, id: string): Promise<void> {
  return call<void>('DELETE', users(org, id));
}

/** Creates a link for a user who has not signed in yet or who lost the password. */
export function linkFor(org: string, id: string): Promise<WithLink> {
  return call<WithLink>('POST', `${users(org, id)}/link`, { body: {} });
}

/** Entries of the audit log, latest first, of one resource or of all. */
export function auditQuery(org: string, filter: { kind?: string; id?: string }) {
  return infiniteQueryOptions({
    queryKey: [org, 'audit', filter] as const,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...filter, limit: AUDIT_PAGE, cursor: pageParam };
      const path = `/api/admin/organizations/${org}/audit`;
      return call<CursorPage<AuditEntry>>('GET', path, { query, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: CursorPage<AuditEntry>) => page.nextCursor ?? undefined,
  });
}
