// A form's state: what was read, what the person made of it, and the patch between the two.
import { useCallback, useMemo, useState } from 'react';
import { isSame, patchBetween, withPatch } from './merge';

export interface Draft<T extends object> {
  /** What the form shows. */
  fields: T;
  /** What was read. */
  base: T & { version?: string };
  isChanged: boolean;
  /** What is to be sent. */
  patch: Record<string, unknown>;
  /** The version that was read. */
  version: string | undefined;
  set: (changes: Partial<T>) => void;
  reset: () => void;
  /** Puts the person's own changes on top of what somebody else made of it. */
  rebase: (onto: T & { version?: string }) => void;
  /** Takes what the service says, and drops what was not saved. */
  adopt: (read: T & { version?: string }) => void;
  /** Takes what the service made of `sent`; what was typed since then stays as a change on top of it. */
  settle: (sent: T, saved: T & { version?: string }) => void;
}

export function useDraft<T extends object>(read: T & { version?: string }): Draft<T> {
  const [base, setBase] = useState(read);
  const [fields, setFields] = useState<T>(read);
  const patch = useMemo(() => patchBetween(base, fields), [base, fields]);
  const isChanged = !isSame(base, fields);
  const adopt = useCallback((read: T & { version?: string }) => {
    setBase(read);
    setFields(read);
  }, []);
  // An untouched form follows what others save.
  if (!isChanged && read.version !== base.version && Number(read.version) > Number(base.version)) adopt(read);
  return {
    fields,
    base,
    isChanged,
    patch,
    version: base.version,
    set: useCallback((changes) => setFields((before) => ({ ...before, ...changes })), []),
    reset: useCallback(() => setFields(base), [base]),
    rebase: useCallback(
      (onto) => {
        setBase(onto);
        setFields(withPatch(onto, patch));
      },
      [patch],
    ),
    adopt,
    settle: useCallback((sent, saved) => {
      setBase(saved);
      setFields((now) => withPatch(saved, patchBetween(sent, now)));
    }, []),
  };
}
