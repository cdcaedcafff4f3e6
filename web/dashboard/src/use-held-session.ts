// Keeps a page with unsaved changes open when the session ends, and
// shows the sign-in above it.
import { createContext, useCallback, useContext, useEffect, useMemo, useRef, useState } from 'react';
import type { Session } from './api/types';

interface Held {
  /** Session with which the page was opened, also after its end. */
  session: Session;
  /** Number of components with unsaved changes. */
  count: (change: 1 | -1) => void;
  isAtStake: boolean;
  /** Ends the session and gives up the unsaved changes. */
  leave: (end: () => Promise<void>) => Promise<void>;
}

export const HeldSession = createContext<Held | undefined>(undefined);

/** Current session, or the ended one while there are unsaved changes. */
export function useHeldSession(now: Session | null | undefined): { held: Held | undefined; letGo: () => void } {
  const [last, setLast] = useState(now);
  if (now && now !== last) setLast(now);
  const [atStake, setAtStake] = useState(0);
  const count = useCallback((change: 1 | -1) => setAtStake((before) => before + change), []);
  const isLeaving = useRef(false);
  const leave = useCallback(async (end: () => Promise<void>) => {
    isLeaving.current = true;
    try {
      await end();
    } catch (error) {
      isLeaving.current = false;
      throw error;
    }
  }, []);
  const isAtStake = atStake > 0;
  const session = now ?? (now === null && isAtStake && !isLeaving.current ? last : undefined);
  const held = useMemo(
    () => (session ? { session, count, isAtStake, leave } : undefined),
    [session, count, isAtStake, leave],
  );
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
