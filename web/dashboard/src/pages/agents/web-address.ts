// Image and page addresses; other schemes such as `javascript:` would run in the page of a visitor.

/** Returns the validation error of an optional address. */
export function validateWebAddress(text: string): string | undefined {
  return text === '' || /^https?:\/\/[^\s/]/i.test(text) ? undefined : 'Use an address that begins with https://';
}
