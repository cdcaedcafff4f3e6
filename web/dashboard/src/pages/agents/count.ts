// Counts in words: `1 product`, `1,204 products`.
const whole = new Intl.NumberFormat('en');

export function count(number: number, thing: string): string {
  return `${whole.format(number)} ${thing}${number === 1 ? '' : 's'}`;
}
