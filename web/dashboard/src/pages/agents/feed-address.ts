// Validation of feed addresses while typing.

/** Returns the validation error of an address. */
export function validateFeedAddress(text: string): string | undefined {
  if (text === '') return 'Enter the address of the feed';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:\/\//i.test(text)) return 'Use an address that begins with https://';
  if (url.username !== '' || url.password !== '') return 'Leave out user and password: all members would see them';
  return undefined;
}
