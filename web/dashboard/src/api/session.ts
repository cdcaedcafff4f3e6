// The signed-in user and their permissions.
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useContext } from 'react';
import { forgetAllDrafts } from '../kept-drafts';
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

export function signIn(email: string, password: string): Promise<Session> {
  return call<Session>('POST', '/api/dashboard/session', { body: { email, password } });
}

export function signOut(): Promise<void> {
  return call<void>('DELETE', '/api/dashboard/session');
}

/** Redeems a one-time link. Invitations and password links need a password, sign-in links do not. */
export function redeem(link: string, password?: string): Promise<Session> {
  return call<Session>('POST', '/api/dashboard/link', { body: { link, ...(password !== undefined && { password }) } });
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
