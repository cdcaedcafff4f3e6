// Copies to the clipboard, also over plain http, where browsers do not offer the clipboard API.
import { type RefObject, useState } from 'react';

type Copied = 'yes' | 'failed' | undefined;

/** Duration of the “Copied” label. */
const SAID_MS = 1_500;

/** Copies `value`; if copying fails, selects it in `shown`. */
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
    // Only secure origins have it, although the types claim otherwise.
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
