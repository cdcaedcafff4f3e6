// Counts in words: `1 product`, `1,204 products`.
const whole = new Intl.NumberFormat('en');

export function count(number: number, resource: string): string {
  return `${whole.format(number)} ${resource}${number === 1 ? '' : 's'}`;
}
