// Fields of a form, which are facts for those who may not edit.
import {
  ColorInput,
  createTheme,
  MantineThemeProvider,
  NumberInput,
  SegmentedControl,
  Select,
  Switch,
  Textarea,
  TextInput,
} from '@mantine/core';
import type { ReactNode } from 'react';

const text = { readOnly: true, variant: 'unstyled' } as const;

const facts = createTheme({
  components: {
    TextInput: TextInput.extend({ defaultProps: text }),
    Textarea: Textarea.extend({ defaultProps: text }),
    NumberInput: NumberInput.extend({ defaultProps: { ...text, hideControls: true } }),
    Select: Select.extend({ defaultProps: { ...text, rightSection: <span /> } }),
    ColorInput: ColorInput.extend({
      defaultProps: { ...text, withPicker: false, withEyeDropper: false, popoverProps: { disabled: true } },
    }),
    SegmentedControl: SegmentedControl.extend({ defaultProps: { readOnly: true } }),
    // A checkbox cannot be read-only; its style keeps it readable.
    Switch: Switch.extend({ defaultProps: { disabled: true } }),
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
