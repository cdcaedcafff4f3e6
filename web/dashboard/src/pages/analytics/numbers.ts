// Number and date formats.

const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
const tenths = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 2 });
const share = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });
const signedShare = new Intl.NumberFormat(undefined, {
  style: 'percent',
  maximumFractionDigits: 0,
  signDisplay: 'exceptZero',
});
const dayAndMonth = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Placeholder for a missing figure. */
export const NONE = '–';
const EXACT_MAX = 100_000;

export function count(value: number | null): string {
  if (value === null) return NONE;
  return value < EXACT_MAX ? whole.format(value) : short.format(value);
}

export function time(milliseconds: number | null): string {
  if (milliseconds === null) return NONE;
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${tenths.format(milliseconds / 1000)} s`;
}

export function stars(rating: number | null): string {
  return rating === null ? NONE : tenths.format(rating);
}

export function part(some: number, all: number): string {
  return all === 0 ? NONE : share.format(some / all);
}

/** Returns the change since the period before. */
export function change(before: number | undefined, now: number): string {
  if (before === undefined) return '\u00a0';
  if (before === 0) return 'none in the period before';
  return `${signedShare.format(now / before - 1)} on the period before`;
}

export function dayName(day: string): string {
  return dayAndMonth.format(new Date(day));
}
