// The signed-in user and their permissions.
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useContext } from 'react';
import { forgetAllDrafts } from '../kept-drafts';
import { attempt } from '../storage';
import { HeldSession } from '../use-held-session';
import { call, Problem } from './client';
import type { Session } from './types';

export const SESSION_KEY = ['session'] as const;

/** Query for the session; null without one. */
export const sessionQuery = queryOptions({
  queryKey: SESSION_KEY,
  queryFn: async ({ signal }): Promise<Session | null> => {
    try {
      return await call<Session>('GET', '/api/dashboard/session', { signal });
    } catch (error) {
      if (error instanceof Problem && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

const ORGANIZATION_KEY = 'switchboard.organization';

/** Returns the short name of the organization in which this browser was signed in last. */
export function lastOrganization(): string {
  return attempt(() => localStorage.getItem(ORGANIZATION_KEY)) ?? '';
}

function rememberOrganization(session: Session): Session {
  attempt(() => localStorage.setItem(ORGANIZATION_KEY, session.organization.slug));
  return session;
}

export async function signIn(email: string, password: string, organization: string): Promise<Session> {
  const named = organization === '' ? {} : { organization };
  const body = { email, password, ...named };
  return rememberOrganization(await call<Session>('POST', '/api/dashboard/session', { body }));
}

export function signOut(): Promise<void> {
  return call<void>('DELETE', '/api/dashboard/session');
}

/** Redeems a one-time link. Invitations and password links need a password, sign-in links do not. */
export async function redeem(link: string, password?: string): Promise<Session> {
  const body = { link, ...(password !== undefined && { password }) };
  return rememberOrganization(await call<Session>('POST', '/api/dashboard/link', { body }));
}

/** Changes the password; users who signed in with a link may have none yet. */
export function changePassword(newPassword: string, currentPassword?: string): Promise<Session> {
  const current = currentPassword === undefined ? {} : { currentPassword };
  return call<Session>('POST', '/api/dashboard/password', { body: { newPassword, ...current } });
}

/** Session of a page behind the sign-in. */
export function useSession(): Session {
  const { data } = useQuery(sessionQuery);
  const held = useContext(HeldSession)?.session;
  const session = data ?? held;
  if (session === undefined) throw new Error('this page needs a session');
  return session;
}

/** Returns whether the user has a permission. */
export function useMay(right: string): boolean {
  return useSession().rights.includes(right);
}

export function useEndSession(): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await signOut();
    forgetAllDrafts();
    client.setQueryData(SESSION_KEY, null);
    // The cache of one user must not be visible to the next.
    client.removeQueries({ predicate: (query) => query.queryKey[0] !== SESSION_KEY[0] });
  };
}
