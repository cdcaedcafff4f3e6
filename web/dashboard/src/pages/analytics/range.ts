// Period of the analytics page: recent days or a custom range.

export interface AnalyticsSearch {
  days?: string;
  from?: string;
  to?: string;
  agent?: string;
  team?: string;
}

/** A letter avoids quotes around numbers in the URL. */
export const DAYS_DEFAULT = '30d';
export const CHOSEN = 'chosen';
export const RANGES = [
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
  { value: '90d', label: 'Last 90 days' },
  { value: CHOSEN, label: 'Custom range' },
];
/** Maximum days of a request. */
const DAYS_MAX = 400;
const DAY_MS = 24 * 60 * 60 * 1000;

export interface Range {
  from: string;
  to: string;
}

/** Range of the URL, clamped to a valid one. */
export function rangeOf(search: AnalyticsSearch, today: string): Range {
  if (search.days !== CHOSEN) {
    const known = RANGES.find(({ value }) => value === search.days)?.value ?? DAYS_DEFAULT;
    return { from: plus(today, 1 - Number.parseInt(known, 10)), to: today };
  }
  const to = isDay(search.to) ? search.to : today;
  const from = isDay(search.from) ? search.from : plus(to, 1 - Number.parseInt(DAYS_DEFAULT, 10));
  if (from > to) return { from: to, to };
  const earliest = plus(to, 1 - DAYS_MAX);
  const isTooLong = from < earliest;
  return { from: isTooLong ? earliest : from, to };
}

/** Returns the period of the same length that ends before this one. */
export function periodBefore({ from, to }: Range): Range {
  const days = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
  return { from: plus(from, -days), to: plus(from, -1) };
}

export function todayInUtc(): string {
  return new Date().toISOString().slice(0, 10);
}

function plus(day: string, days: number): string {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

function isDay(text: string | undefined): text is string {
  return text !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));
}
