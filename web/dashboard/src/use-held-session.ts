// Keeps a page with unsaved changes open when the session ends, and
// shows the sign-in above it.
import { createContext, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import type { Session } from './api/types';

interface Held {
  /** Session with which the page was opened, also after its end. */
  session: Session;
  /** Number of components with unsaved changes. */
  count: (change: 1 | -1) => void;
}

export const HeldSession = createContext<Held | undefined>(undefined);

/** Current session, or the ended one while there are unsaved changes. */
export function useHeldSession(now: Session | null | undefined): { held: Held | undefined; letGo: () => void } {
  const [last, setLast] = useState(now);
  if (now && now !== last) setLast(now);
  const [atStake, setAtStake] = useState(0);
  const count = useCallback((change: 1 | -1) => setAtStake((before) => before + change), []);
  const session = now ?? (now === null && atStake > 0 ? last : undefined);
  const held = useMemo(() => (session ? { session, count } : undefined), [session, count]);
  return { held, letGo: useCallback(() => setLast(undefined), []) };
}

/** Keeps the page after the session ends as long as `isAtStake` is true. */
export function useHold(isAtStake: boolean): void {
  const count = useContext(HeldSession)?.count;
  useEffect(() => {
    if (!isAtStake || count === undefined) return undefined;
    count(1);
    return () => count(-1);
  }, [isAtStake, count]);
}
