// Merge patches (RFC 7396): forms send only changed fields, so that two users can change different fields.

type Json = unknown;
type Fields = Record<string, Json>;

const isFields = (value: Json): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

export function isSame(left: Json, right: Json): boolean {
  if (isFields(left) && isFields(right)) {
    const names = new Set([...Object.keys(left), ...Object.keys(right)]);
    return [...names].every((name) => isSame(left[name], right[name]));
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => isSame(item, right[index]));
  }
  // A merge patch cannot tell an absent field from null.
  return (left ?? null) === (right ?? null);
}

/** Returns the patch from `before` to `after`. Lists are replaced as a whole. */
export function patchBetween(before: Json, after: Json): Fields {
  const patch: Fields = {};
  if (!isFields(before) || !isFields(after)) return patch;
  for (const [name, value] of Object.entries(after)) {
    if (isSame(before[name], value)) continue;
    patch[name] = isFields(before[name]) && isFields(value) ? patchBetween(before[name], value) : value;
  }
  return patch;
}

export function withPatch<T>(before: T, patch: Fields): T {
  const after: Fields = { ...(before as Fields) };
  for (const [name, value] of Object.entries(patch)) {
    after[name] = isFields(after[name]) && isFields(value) ? withPatch(after[name], value) : value;
  }
  return after as T;
}

/** Returns the fields of a patch with their values; nested fields are named like `theme.textColor`. */
export function flat(patch: Fields, prefix = ''): Map<string, Json> {
  const fields = new Map<string, Json>();
  for (const [name, value] of Object.entries(patch)) {
    if (isFields(value)) for (const [path, inner] of flat(value, `${prefix}${name}.`)) fields.set(path, inner);
    else fields.set(prefix + name, value);
  }
  return fields;
}
