// Form state: the read resource, the edited fields, and the patch between them.
import { useCallback, useMemo, useState } from 'react';
import { isSame, patchBetween, withPatch } from './merge';

export interface Draft<T extends object> {
  /** Edited fields. */
  fields: T;
  /** Fields as read. */
  base: T & { version?: string };
  isChanged: boolean;
  /** Merge patch to send. */
  patch: Record<string, unknown>;
  /** Version that was read. */
  version: string | undefined;
  set: (changes: Partial<T>) => void;
  reset: () => void;
  /** Applies the user's changes to the version of another user. */
  rebase: (onto: T & { version?: string }) => void;
  /** Replaces the form and drops unsaved changes. */
  adopt: (read: T & { version?: string }) => void;
  /** Takes the saved version; edits since `sent` stay as changes. */
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
  // Unedited forms follow changes of other users.
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
