// Theme colors: readable text colors and contrast.

const cache = new Map<string, [number, number, number] | undefined>();

/** Red, green and blue of any CSS color, as parsed by the browser. */
export function rgbOf(color: string): [number, number, number] | undefined {
  if (!cache.has(color)) cache.set(color, read(color));
  return cache.get(color);
}

function read(color: string): [number, number, number] | undefined {
  if (!CSS.supports('color', color)) return undefined;
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  if (context === null) return undefined;
  context.fillStyle = '#fff';
  context.fillRect(0, 0, 1, 1);
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0] = context.getImageData(0, 0, 1, 1).data;
  return [red, green, blue];
}

function luminance([red, green, blue]: [number, number, number]): number {
  const linear = (channel: number) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

/** Contrast of two colors (WCAG), 1 to 21; undefined for unknown colors. */
export function contrast(one: string, other: string): number | undefined {
  const [left, right] = [rgbOf(one), rgbOf(other)];
  if (left === undefined || right === undefined) return undefined;
  const [low, high] = [luminance(left), luminance(right)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** White or near-black, whichever has more contrast. */
export function textColorOn(ground: string): string {
  return (contrast(ground, '#ffffff') ?? 21) >= (contrast(ground, '#16181d') ?? 0) ? '#ffffff' : '#16181d';
}
