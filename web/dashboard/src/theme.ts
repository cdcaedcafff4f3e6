// Mantine theme; every color pair has the contrast of WCAG AA.
import { type CSSVariablesResolver, createTheme, defaultVariantColorsResolver, parseThemeColor } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'indigo',
  primaryShade: { light: 7, dark: 6 },
  autoContrast: true,
  luminanceThreshold: 0.36,
  defaultRadius: 'md',
  cursorType: 'pointer',
  fontFamily: 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  headings: {
    fontWeight: '650',
    sizes: { h1: { fontSize: '1.5rem' }, h2: { fontSize: '1.125rem' }, h3: { fontSize: '1rem' } },
  },
  colors: {
    indigo: [
      '#eef0ff',
      '#dfe2ff',
      '#bfc5fd',
      '#a2a9fb',
      '#8b92f8',
      '#7c83f6',
      '#5d62ea',
      '#4a46d4',
      '#4038b4',
      '#352f92',
    ],
    // Darker than the Mantine default, for white text.
    red: ['#fff5f5', '#ffe3e3', '#ffc9c9', '#ffa8a8', '#ff8787', '#fa6b6b', '#d63a3a', '#cc2f2f', '#b82727', '#a32020'],
    dark: [
      '#e4e6eb',
      '#b6bbc4',
      '#989faa',
      '#6d7480',
      '#3a3f49',
      '#2a2e37',
      '#20242b',
      '#16191f',
      '#101217',
      '#0b0d11',
    ],
  },
  respectReducedMotion: true,
  // The default text on light backgrounds is below the contrast required for small text.
  variantColorResolver: (input) => {
    const usual = defaultVariantColorsResolver(input);
    const name = parseThemeColor({ color: input.color ?? input.theme.primaryColor, theme: input.theme }).color;
    const ink = `light-dark(color-mix(in srgb, var(--mantine-color-${name}-9) 72%, black), var(--mantine-color-${name}-2))`;
    // Destructive actions are red in dark mode too.
    if (input.variant === 'subtle' && name === 'red') return { ...usual, color: ink };
    if (input.variant !== 'light') return usual;
    // The default dark backgrounds are too bright, and the default gray equals the page.
    const quiet = `color-mix(in srgb, var(--mantine-color-${name}-8) 26%, var(--board-raised))`;
    const background =
      name === 'gray'
        ? 'light-dark(var(--mantine-color-gray-2), var(--mantine-color-dark-5))'
        : `light-dark(var(--mantine-color-${name}-light), ${quiet})`;
    return { ...usual, background, color: ink };
  },
  components: {
    Badge: { defaultProps: { variant: 'light', radius: 'sm', tt: 'none', fw: 550 } },
    Button: { defaultProps: { fw: 550 } },
    NumberInput: {
      defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'] },
    },
    // Rendered inside a landmark for screen readers.
    Menu: { defaultProps: { portalProps: { target: '#main' }, withInitialFocusPlaceholder: false } },
    Notification: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
    Modal: {
      defaultProps: {
        centered: true,
        overlayProps: { backgroundOpacity: 0.45, blur: 2 },
        closeButtonProps: { 'aria-label': 'Close' },
      },
    },
    Paper: { defaultProps: { withBorder: true, radius: 'lg' } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 300 } },
    TextInput: { defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'] } },
    PasswordInput: {
      defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'] },
    },
    Textarea: { defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'] } },
    Select: {
      defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'], allowDeselect: false },
    },
  },
});

export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#5b616d',
    '--mantine-color-placeholder': '#6b7280',
    '--mantine-color-error': '#c92a2a',
    '--mantine-color-text': '#16181d',
    '--board-ground': '#f7f7f9',
    '--board-raised': '#ffffff',
    '--board-line': '#e4e5ea',
    '--board-selected': '#ecedfd',
    '--board-selected-text': '#3a35a8',
  },
  dark: {
    '--mantine-color-dimmed': '#a0a6b1',
    '--mantine-color-placeholder': '#8d94a0',
    '--mantine-color-error': '#ff8787',
    '--board-ground': '#101217',
    '--board-raised': '#16191f',
    '--board-line': '#2a2e37',
    '--board-selected': '#23264a',
    '--board-selected-text': '#c3c7ff',
  },
});
