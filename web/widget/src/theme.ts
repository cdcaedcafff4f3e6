// Turns a theme into CSS variables of the widget. Values that are not a color, a length or a
// list of fonts are ignored, and texts get a color that is readable on their background.

import type { Theme } from "./settings.ts";

type Rgb = [red: number, green: number, blue: number];

const COLOR = /^(#[0-9a-f]{3,8}|[a-z]{1,32}|(rgb|hsl)a?\([0-9 ,.%/deg-]{1,64}\))$/i;
const LENGTH = /^\d{1,6}(\.\d{1,6})?(px|em|rem|%|pt|vh|vw)$/;
const FONTS = /^[\p{L}\p{N} ,\-_'"]{1,200}$/u;

/** Contrast that WCAG 2.2 AA requires for text. */
const READABLE = 4.5;

/** Sets the variables on `root`, which must be in the document: the browser computes the colors. */
export function applyTheme(root: HTMLElement, theme: Theme): void {
  const white: Rgb = [255, 255, 255];
  const color = (value: string, behind: Rgb, otherwise: Rgb): Rgb =>
    COLOR.test(value) ? (resolve(root, value, behind) ?? otherwise) : otherwise;
  const background = color(theme.backgroundColor, white, white);
  const text = readable(color(theme.textColor, background, [17, 24, 39]), background);
  const primary = color(theme.primaryColor, background, [37, 99, 235]);
  const bot = color(theme.botMessageColor, background, mix(background, text, 0.06));
  const input = color(theme.inputBackgroundColor, background, background);
  const botText = readable(text, bot);
  const inputText = readable(text, input);
  const on = (value: string): [Rgb, Rgb] => {
    const chosen = color(value, background, primary);
    return [chosen, readable(white, chosen)];
  };
  const [header, headerText] = on(theme.chatHeaderColor);
  const [user, userText] = on(theme.userMessageColor);
  const [send, sendText] = on(theme.sendButtonColor);
  const variables: Record<string, Rgb> = {
    background,
    text,
    primary,
    header,
    user,
    bot,
    input,
    send,
    "primary-text": readable(white, primary),
    "header-text": headerText,
    "user-text": userText,
    "bot-text": botText,
    "input-text": inputText,
    "send-text": sendText,
    link: readable(primary, bot, botText),
    accent: readable(primary, background, text),
    quiet: readable(mix(text, background, 0.35), background, text),
    "input-quiet": readable(mix(inputText, input, 0.35), input, inputText),
    line: mix(background, text, 0.14),
    edge: mix(background, text, 0.5),
    soft: mix(background, text, 0.06),
  };
  for (const [name, value] of Object.entries(variables)) root.style.setProperty(`--${name}`, `rgb(${value.join(" ")})`);
  root.style.setProperty("--radius", theme.borderRadius === "0" ? "0px" : LENGTH.test(theme.borderRadius) ? theme.borderRadius : "12px");
  root.style.setProperty("--font", FONTS.test(theme.fontFamily) ? theme.fontFamily : "system-ui, sans-serif");
  root.style.setProperty("color-scheme", luminance(background) < 0.2 ? "dark" : "light");
}

/** Returns the computed color, or nothing if the browser does not know it. */
function resolve(root: HTMLElement, value: string, behind: Rgb): Rgb | null {
  const probe = document.createElement("i");
  probe.style.color = value;
  if (!probe.style.color) return null;
  root.append(probe);
  const parts = getComputedStyle(probe).color.match(/[\d.]+/g)?.map(Number) ?? [];
  probe.remove();
  const [red, green, blue, alpha = 1] = parts;
  if (red === undefined || green === undefined || blue === undefined) return null;
  return mix(behind, [red, green, blue], alpha);
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const part = (at: 0 | 1 | 2) => Math.round(from[at] + (to[at] - from[at]) * share);
  return [part(0), part(1), part(2)];
}

/** Returns `wanted` if it is readable on `behind`, otherwise `otherwise`, black or white. */
function readable(wanted: Rgb, behind: Rgb, otherwise: Rgb = wanted): Rgb {
  const candidates: Rgb[] = [wanted, otherwise, [17, 24, 39], [255, 255, 255], [0, 0, 0]];
  return candidates.find((candidate) => contrast(candidate, behind) >= READABLE) ?? [0, 0, 0];
}

export function contrast(one: Rgb, other: Rgb): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color: Rgb): number {
  const linear = color.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}
