// Slugs identify resources in files and ids, and never change.
const SLUG_CHARS_MAX = 63;

/** Letters that have no decomposition. */
const SPELLED: Record<string, string> = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd', þ: 'th', ð: 'd', ı: 'i' };

/** Returns a free slug for a name; `fallback` stands for a name of which nothing is left. */
export function proposeSlug(name: string, fallback: string, taken: string[]): string {
  const own = slugOf(name);
  for (let number = own === '' ? 2 : 1; ; number += 1) {
    const suffix = number === 1 ? '' : `-${number}`;
    const proposed = (own || fallback).slice(0, SLUG_CHARS_MAX - suffix.length) + suffix;
    if (!taken.includes(proposed)) return proposed;
  }
}

/** Returns the letters and digits of a name, with a hyphen between its words. */
export function slugOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/[ßæœøłđþðı]/g, (letter) => SPELLED[letter] ?? '')
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, SLUG_CHARS_MAX)
    .replace(/^-+|-+$/g, '');
}

/** Returns the validation error of a slug. */
export function validateSlug(slug: string): string | undefined {
  if (/^[a-z0-9][a-z0-9-]{0,62}$/.test(slug)) return undefined;
  return 'Use 1 to 63 characters: a–z, 0–9 and -, not starting with -';
}
