// Copying to the clipboard, also where the page came by plain http and the browser has no clipboard for it.
import { type RefObject, useState } from 'react';

type Copied = 'yes' | 'failed' | undefined;

/** How long it is said that something was copied. */
const SAID_MS = 1_500;

/** Copies `value`, which `shown` shows; where even the old way is closed, it is left selected there. */
export function useCopying(value: string, shown: RefObject<HTMLElement | null>) {
  const [copied, setCopied] = useState<Copied>();
  const copy = async () => {
    const isCopied = (await toClipboard(value)) || (shown.current !== null && copySelected(shown.current));
    setCopied(isCopied ? 'yes' : 'failed');
    if (isCopied) setTimeout(() => setCopied(undefined), SAID_MS);
  };
  return { copied, copy: () => void copy() };
}

async function toClipboard(value: string): Promise<boolean> {
  try {
    // Only pages of a secure origin have it, whatever the types say.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    await clipboard?.writeText(value);
    return clipboard !== undefined;
  } catch {
    return false;
  }
}

function copySelected(element: HTMLElement): boolean {
  window.getSelection()?.selectAllChildren(element);
  return document.execCommand('copy');
}
