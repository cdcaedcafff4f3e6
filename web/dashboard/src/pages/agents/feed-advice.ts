// What to do about a file that was not taken: the service says what happened, and this says how to mend it.

const ADVICE: [RegExp, string][] = [
  [/not public/, 'Use an address that anybody on the web can open, or ask who runs this service to allow the network.'],
  [/only https/, 'Use an address that begins with https://.'],
  [/answered 40[13]/, 'The file is not open to everybody. Make it public, or use a link that needs no sign-in.'],
  [/answered (404|410)/, 'There is no file at this address. Open it in a browser, then correct it here.'],
  [/answered/, 'The shop’s server has a problem. If it lasts, ask who runs that server.'],
  [/cannot be reached/, 'Check the address for a typing mistake, and whether it opens in a browser.'],
  [/one address to the next/, 'Use the address at which the file ends up in a browser.'],
  [/compressed/, 'Offer the file as plain CSV or JSON, not as .gz or .zip.'],
  [
    /broke off|in time|middle of row/,
    'The file did not arrive whole. If it happens again, ask who runs the shop’s server.',
  ],
  [/XML or HTML/, 'This looks like a page and not like a file. Choose CSV or JSON where your shop exports it.'],
  [/UTF-16/, 'Save the file as “CSV UTF-8”.'],
  [/more than \d+ (products|bytes)/, 'Leave out what is not sold, or share the shop between several agents.'],
  [/names no column|no rows|none of the feed/, 'Name the columns in its first row, one of them “title”.'],
  [/larger than/, 'Look for a quote or a bracket that is not closed.'],
];

export function adviceOn(error: string): string {
  return ADVICE.find(([what]) => what.test(error))?.[1] ?? '';
}
