// Where things stand in a chart.

/** Steps of an axis that people count in. */
const STEPS = [1, 2, 2.5, 5, 10];
const GRID_LINES = 4;

/** The values at which lines are drawn, from nothing to at least `max`. */
export function ticks(max: number): number[] {
  const rough = Math.max(max, 1) / GRID_LINES;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max((STEPS.find((step) => step * size >= rough) ?? 10) * size, 1);
  const lines = Math.max(Math.ceil(max / step), 1);
  return Array.from({ length: lines + 1 }, (_, line) => line * step);
}

/** Which of so many places bear a name, when so many names have room. */
export function named(places: number, room: number): number[] {
  const every = Math.max(1, Math.ceil(places / Math.max(1, room)));
  return Array.from({ length: Math.ceil(places / every) }, (_, name) => name * every);
}
