// Addresses of pictures and pages: other schemes, for instance `javascript:`, would run in a visitor's page.

/** What is wrong with it, if anything; none at all is fine. */
export function webAddressMistake(text: string): string | undefined {
  return text === '' || /^https?:\/\/[^\s/]/i.test(text) ? undefined : 'Use an address that begins with https://';
}
