// Unsaved changes in the storage of the tab, so that a reload does not lose them.
const PREFIX = 'draft:';

interface KeptDraft<T> {
  base: T;
  fields: T;
}

export function keepDraft<T>(key: string, draft: KeptDraft<T>): void {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(draft));
  } catch {
    // A full or forbidden storage only costs the restoration.
  }
}

export function readDraft<T>(key: string): KeptDraft<T> | undefined {
  try {
    const kept = sessionStorage.getItem(PREFIX + key);
    return kept === null ? undefined : (JSON.parse(kept) as KeptDraft<T>);
  } catch {
    return undefined;
  }
}

export function forgetDraft(key: string): void {
  try {
    sessionStorage.removeItem(PREFIX + key);
  } catch {
    // Without storage there is nothing to remove.
  }
}

/** Removes the drafts of a user who leaves. */
export function forgetAllDrafts(): void {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  } catch {
    // Without storage there is nothing to remove.
  }
}
