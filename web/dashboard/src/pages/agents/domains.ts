// Validation of allowed domains before saving; the service has the final say.
const ENTRY_CHARS_MAX = 300;
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;

/** Returns the validation error of an entry. */
export function validateDomain(entry: string): string | undefined {
  if (entry.length > ENTRY_CHARS_MAX) return 'This domain is too long';
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(entry)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') return 'Only http and https are allowed';
  const authority = scheme === undefined ? entry : entry.slice(scheme.length + '://'.length);
  if (/[/?#]/.test(authority)) return 'Enter the origin without a path: browsers send only the origin';
  if (authority === '*') return 'Leave the list empty to allow any page';
  const [, wildcard, host = '', port] = /^(\*\.)?(\[[0-9a-f:.]+\]|[^:]*)(?::(\d+))?$/i.exec(authority) ?? [];
  if (host === '') return 'Use an origin such as https://shop.example, shop.example or *.shop.example';
  if (port !== undefined && Number(port) > 65_535) return 'Ports end at 65535';
  if (/[^\x20-\x7e]/.test(host)) return 'Enter non-ASCII names in their xn-- form, as browsers send them';
  if (host.startsWith('[')) return wildcard === undefined ? undefined : 'An IP address has no subdomains';
  if (!host.split('.').every((label) => LABEL.test(label))) return 'This is not a host name';
  if (wildcard !== undefined && !host.includes('.')) return 'This would match a whole top-level domain';
  return undefined;
}

/** Describes which pages an entry allows. */
export function domainMeaning(entry: string): string {
  const bare = entry.replace(/^https?:\/\//i, '');
  if (bare.startsWith('*.')) return `Every subdomain of ${bare.slice(2)}, but not ${bare.slice(2)} itself`;
  const isLocal = /^(localhost|127\.0\.0\.1|\[::1\])(:|$)/i.test(bare);
  const scheme = /^(https?):/i.exec(entry)?.[1]?.toLowerCase() ?? (isLocal ? 'http' : 'https');
  return `Pages of ${scheme}://${bare}`;
}
