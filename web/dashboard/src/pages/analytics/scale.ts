// Axis values and label positions of a chart.

/** Round steps of an axis. */
const STEPS = [1, 2, 5, 10];
const GRID_LINES = 4;

/** Returns the grid values from zero to at least `max`. */
export function ticks(max: number): number[] {
  const rough = Math.max(max, 1) / GRID_LINES;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max((STEPS.find((step) => step * size >= rough) ?? 10) * size, 1);
  const lines = Math.max(Math.ceil(max / step), 1);
  return Array.from({ length: lines + 1 }, (_, line) => line * step);
}

/** Returns which of `places` positions have a label if `room` labels fit; the last one always has. */
export function named(places: number, room: number): number[] {
  const every = Math.max(1, Math.ceil(places / Math.max(1, room)));
  return Array.from({ length: Math.ceil(places / every) }, (_, name) => places - 1 - name * every).reverse();
}
