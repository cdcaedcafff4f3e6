// Form state: the read resource, the edited fields, and the patch between them.
import { useCallback, useEffect, useMemo, useState } from 'react';
import { useSession } from './api/session';
import { forgetDraft, keepDraft, readDraft } from './kept-drafts';
import { isSame, patchBetween, withPatch } from './merge';

export interface Draft<T extends object> {
  /** Edited fields. */
  fields: T;
  /** Fields as read. */
  base: T & { version?: string };
  isChanged: boolean;
  /** The changes were made before the page was loaded. */
  isRestored: boolean;
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

export function useDraft<T extends object>(read: T & { id: string; version?: string }): Draft<T> {
  // Drafts belong to a user, because another one may sign in in the same tab.
  const key = `${useSession().user.id}:${read.id}`;
  const [restored] = useState(() => readDraft<T & { version?: string }>(key));
  const [base, setBase] = useState<T & { version?: string }>(restored?.base ?? read);
  const [fields, setFields] = useState<T>(restored?.fields ?? read);
  const patch = useMemo(() => patchBetween(base, fields), [base, fields]);
  const isChanged = !isSame(base, fields);
  useEffect(() => {
    if (isChanged) keepDraft(key, { base, fields });
    else forgetDraft(key);
  }, [key, isChanged, base, fields]);
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
    isRestored: restored !== undefined && isSame(restored.base, base),
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
