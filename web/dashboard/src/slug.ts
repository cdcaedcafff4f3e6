// Slugs identify resources in files and ids, and never change.
const SLUG_CHARS_MAX = 63;

export function slugOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .toLowerCase();
  return plain
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, SLUG_CHARS_MAX);
}

/** Returns the validation error of a slug. */
export function validateSlug(slug: string): string | undefined {
  if (/^[a-z0-9][a-z0-9-]{0,62}$/.test(slug)) return undefined;
  return 'Use 1 to 63 characters: a–z, 0–9 and -, not starting with -';
}
