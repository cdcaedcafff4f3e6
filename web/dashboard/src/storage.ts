// Access to the storage of the browser, which may be full or forbidden. The page works without it.

/** Returns the result of an access, or nothing if it fails. */
export function attempt<T>(access: () => T): T | undefined {
  try {
    return access();
  } catch {
    return undefined;
  }
}
