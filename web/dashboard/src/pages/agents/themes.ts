// Theme fields, presets, and defaults of the appearance.
import type { Disclosure, Theme } from '../../api/types';

export const COLORS: [keyof Theme, string][] = [
  ['primaryColor', 'Primary'],
  ['backgroundColor', 'Chat background'],
  ['textColor', 'Text'],
  ['chatHeaderColor', 'Header'],
  ['userMessageColor', 'Visitor’s bubble'],
  ['botMessageColor', 'Agent’s bubble'],
  ['inputBackgroundColor', 'Input background'],
  ['sendButtonColor', 'Send button'],
];

export const THEME_DEFAULT: Theme = {
  primaryColor: '#2563eb',
  backgroundColor: '#ffffff',
  textColor: '#111827',
  borderRadius: '12px',
  fontFamily: 'system-ui, sans-serif',
  chatHeaderColor: '#2563eb',
  userMessageColor: '#2563eb',
  botMessageColor: '#f3f4f6',
  inputBackgroundColor: '#ffffff',
  sendButtonColor: '#2563eb',
};

export const DISCLOSURE_DEFAULT: Disclosure = { enabled: true, text: '', privacyLink: null };

/** Returns a theme with one brand color. */
function themeOf(color: string, rest: Partial<Theme> = {}): Theme {
  return {
    ...THEME_DEFAULT,
    primaryColor: color,
    chatHeaderColor: color,
    userMessageColor: color,
    sendButtonColor: color,
    ...rest,
  };
}

export const PRESETS: { name: string; theme: Theme }[] = [
  { name: 'Blue', theme: THEME_DEFAULT },
  { name: 'Violet', theme: themeOf('#6d28d9', { borderRadius: '16px' }) },
  { name: 'Forest', theme: themeOf('#166534', { botMessageColor: '#eef5ef' }) },
  {
    name: 'Clay',
    theme: themeOf('#9a3412', {
      backgroundColor: '#fffaf5',
      botMessageColor: '#f6ece2',
      inputBackgroundColor: '#fffaf5',
    }),
  },
  { name: 'Ink', theme: themeOf('#111827', { borderRadius: '6px' }) },
  {
    name: 'Night',
    theme: themeOf('#6366f1', {
      backgroundColor: '#0f1117',
      textColor: '#e5e7eb',
      chatHeaderColor: '#181b24',
      botMessageColor: '#1f2430',
      inputBackgroundColor: '#181b24',
      userMessageColor: '#4f46e5',
    }),
  },
];
