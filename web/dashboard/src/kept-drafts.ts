// Unsaved changes in the storage of the tab, so that a reload does not lose them.
import { attempt } from './storage';

const PREFIX = 'draft:';

interface KeptDraft<T> {
  base: T;
  fields: T;
}

export function keepDraft<T>(key: string, draft: KeptDraft<T>): void {
  attempt(() => sessionStorage.setItem(PREFIX + key, JSON.stringify(draft)));
}

export function readDraft<T>(key: string): KeptDraft<T> | undefined {
  return attempt(() => JSON.parse(sessionStorage.getItem(PREFIX + key) ?? 'null') as KeptDraft<T> | null) ?? undefined;
}

export function forgetDraft(key: string): void {
  attempt(() => sessionStorage.removeItem(PREFIX + key));
}

/** Removes the drafts of a user who leaves. */
export function forgetAllDrafts(): void {
  attempt(() => {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  });
}
