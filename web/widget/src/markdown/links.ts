// Checks addresses and texts of links. Needs no browser, so that tests run without one.

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/** Returns the address of a link if it may be followed. */
export function parseLinkAddress(address: string): URL | null {
  // Parsed without a base, so that only addresses with a scheme are accepted.
  try {
    const url = new URL(address);
    return SCHEMES.has(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/** Returns whether the text of a link equals its address or host. A text that only contains the host may begin
 * with another one. */
export function matchesAddress(said: string, address: string, url: URL): boolean {
  // The part before an @ looks like a host, and some letters of other alphabets look like Latin ones.
  if (url.username || url.password || !said.toLowerCase().includes(url.host)) return false;
  return [url.host, address, url.href].some((whole) => bare(whole) === bare(said));
}

function bare(text: string): string {
  return text.trim().toLowerCase().replace(/\/$/, "");
}
