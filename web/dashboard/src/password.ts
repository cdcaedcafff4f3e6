// Validation of new passwords while typing.
export const PASSWORD_CHARS_MIN = 12;

export function validatePassword(password: string): string | undefined {
  const missing = PASSWORD_CHARS_MIN - [...password].length;
  return password === '' || missing <= 0 ? undefined : `${missing} more ${missing === 1 ? 'character' : 'characters'}`;
}
