// Fields of a form, which are facts for those who may not edit.
import { createTheme, MantineThemeProvider } from '@mantine/core';
import type { ReactNode } from 'react';

const text = { readOnly: true, variant: 'unstyled' } as const;

const facts = createTheme({
  components: {
    TextInput: { defaultProps: text },
    Textarea: { defaultProps: text },
    NumberInput: { defaultProps: { ...text, hideControls: true } },
    Select: { defaultProps: { ...text, rightSection: <span /> } },
    ColorInput: {
      defaultProps: { ...text, withPicker: false, withEyeDropper: false, popoverProps: { disabled: true } },
    },
    SegmentedControl: { defaultProps: { readOnly: true } },
    // Checkboxes cannot be read-only; their style keeps them readable.
    Checkbox: { defaultProps: { disabled: true } },
    Switch: { defaultProps: { disabled: true } },
  },
});

export function Facts({ isReadOnly, children }: { isReadOnly: boolean; children: ReactNode }) {
  if (!isReadOnly) return children;
  return (
    <MantineThemeProvider theme={facts} inherit>
      <div className="facts">{children}</div>
    </MantineThemeProvider>
  );
}
