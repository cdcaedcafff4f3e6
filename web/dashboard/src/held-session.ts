// What a person has typed must outlive their session: while there is something to lose, the page stays as it is, and the
// sign-in comes to it.
import { createContext, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import type { Session } from './api/types';

interface Held {
  /** The session that the page was opened with, also after its end. */
  session: Session;
  /** Counts what would be lost with the page. */
  count: (change: 1 | -1) => void;
}

export const HeldSession = createContext<Held | undefined>(undefined);

/** The session of now, or the one that has ended while something is at stake. */
export function useHeldSession(now: Session | null | undefined): { held: Held | undefined; letGo: () => void } {
  const [last, setLast] = useState(now);
  if (now && now !== last) setLast(now);
  const [atStake, setAtStake] = useState(0);
  const count = useCallback((change: 1 | -1) => setAtStake((before) => before + change), []);
  const session = now ?? (now === null && atStake > 0 ? last : undefined);
  const held = useMemo(() => (session ? { session, count } : undefined), [session, count]);
  return { held, letGo: useCallback(() => setLast(undefined), []) };
}

/** Keeps the page although the session ends, as long as `isAtStake`. */
export function useHold(isAtStake: boolean): void {
  const count = useContext(HeldSession)?.count;
  useEffect(() => {
    if (!isAtStake || count === undefined) return undefined;
    count(1);
    return () => count(-1);
  }, [isAtStake, count]);
}
