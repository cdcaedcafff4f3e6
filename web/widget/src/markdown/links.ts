// What a link may lead to, and whether its text says so. It needs no browser, so that it can be tested without one.

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/** The address of a link that may be followed. */
export function followable(address: string): URL | null {
  // Without a base, so that only what names its scheme is an address.
  try {
    const url = new URL(address);
    return SCHEMES.has(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

/** Whether the text of a link is its address or the host of it, and nothing else: what only contains the host may begin
 * with another one. */
export function tellsItsHost(said: string, address: string, url: URL): boolean {
  // What stands before an @ looks like a host, and letters of other alphabets like those of one.
  if (url.username || url.password || !said.toLowerCase().includes(url.host)) return false;
  return [url.host, address, url.href].some((whole) => bare(whole) === bare(said));
}

function bare(text: string): string {
  return text.trim().toLowerCase().replace(/\/$/, "");
}
