// Advice for rejected product files: the service reports the problem, this adds the solution.

const ADVICE: [RegExp, string][] = [
  [/not public/, 'Use a public address, or ask the operator of this service to allow the network.'],
  [/only https/, 'Use an address that begins with https://.'],
  [/answered 40[13]/, 'The file is not public. Make it public, or use a link that needs no sign-in.'],
  [/answered (404|410)/, 'There is no file at this address. Open it in a browser, then correct it here.'],
  [/answered/, 'The shop’s server has a problem. If it persists, contact the operator of that server.'],
  [/cannot be reached/, 'Check the address for typos, and whether it opens in a browser.'],
  [/one address to the next/, 'Use the final address of the file, as a browser shows it.'],
  [/web page/, 'This is a web page, not a product file. Use the product export of your shop.'],
  [/workbook \(|protected/, 'Save it as “Excel Workbook (.xlsx)” without a password, or as CSV.'],
  [/compressed|ZIP/, 'Unpack it and use the file inside.'],
  [
    /broke off|in time|middle of row/,
    'The file was incomplete. If it happens again, contact the operator of the shop’s server.',
  ],
  [/more than \d+ (products?|bytes)/, 'Remove products that are not sold, or split the shop between several agents.'],
  [/confirm if/, 'Check the file of your shop first: products or their values would be lost.'],
  [/names no column|no rows|none of the feed/, 'Name the columns in its first row, one of them “title”.'],
  [/larger than/, 'Look for a quote or a bracket that is not closed.'],
];

export function adviceOn(error: string): string {
  return ADVICE.find(([what]) => what.test(error))?.[1] ?? '';
}
