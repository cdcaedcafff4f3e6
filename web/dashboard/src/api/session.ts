// Who is signed in, and what they may do.
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useContext } from 'react';
import { HeldSession } from '../held-session';
import { call, Problem } from './client';
import type { Session } from './types';

export const SESSION_KEY = ['session'] as const;

/** The signed-in person's session; null for a stranger. */
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

/** Redeems a one-time link: of an invitation, of a new password, or to sign in, which alone takes no password. */
export function redeem(link: string, password?: string): Promise<Session> {
  return call<Session>('POST', '/api/dashboard/link', { body: { link, ...(password !== undefined && { password }) } });
}

/** Sets another password; who came by a link may have none yet. */
export function changePassword(newPassword: string, currentPassword?: string): Promise<Session> {
  const current = currentPassword === undefined ? {} : { currentPassword };
  return call<Session>('POST', '/api/dashboard/password', { body: { newPassword, ...current } });
}

/** The session of a page behind the sign-in. */
export function useSession(): Session {
  const { data } = useQuery(sessionQuery);
  const held = useContext(HeldSession)?.session;
  const session = data ?? held;
  if (session === undefined) throw new Error('this page needs a session');
  return session;
}

/** Whether the signed-in person has a right. */
export function useMay(right: string): boolean {
  return useSession().rights.includes(right);
}

export function useEndSession(): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await signOut();
    client.setQueryData(SESSION_KEY, null);
    // What one person has read is nothing for the next.
    client.removeQueries({ predicate: (query) => query.queryKey[0] !== SESSION_KEY[0] });
  };
}
