// Texts, theme, notices and layout of the widget.
import {
  Alert,
  Button,
  ColorInput,
  Group,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  TextInput,
  UnstyledButton,
} from '@mantine/core';
import { IconAlertTriangle, IconContrast2 } from '@tabler/icons-react';
import type { Disclosure, Theme, WidgetSettings } from '../../api/types';
import { Card } from '../../components/Card';
import { contrast, textColorOn } from './colors';
import type { SectionProps } from './section';
import { COLORS, DISCLOSURE_DEFAULT, PRESETS, THEME_DEFAULT } from './themes';
import { validateWebAddress } from './web-address';

const SWATCHES = [
  '#2563eb',
  '#4f46e5',
  '#7c3aed',
  '#db2777',
  '#dc2626',
  '#ea580c',
  '#ca8a04',
  '#16a34a',
  '#0d9488',
  '#0891b2',
  '#111827',
  '#f3f4f6',
  '#ffffff',
];
/** Contrast that WCAG AA requires for text. */
const CONTRAST_MIN = 4.5;

export function Appearance(props: SectionProps) {
  return (
    <Stack>
      <ThemeEditor {...props} />
      <Texts {...props} />
      <DisclosureSettings {...props} />
      <Widget {...props} />
    </Stack>
  );
}

function ThemeEditor({ form, isReadOnly, fieldError }: SectionProps) {
  const { theme } = form.fields;
  const set = (changes: Partial<Theme>) => form.set({ theme: { ...theme, ...changes } });
  return (
    <Card
      title="Theme"
      about="Changes appear in the preview immediately."
      actions={
        !isReadOnly && (
          <Button variant="subtle" size="compact-sm" onClick={() => set(THEME_DEFAULT)}>
            Reset
          </Button>
        )
      }
    >
      {!isReadOnly && <Presets onPick={set} />}
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        {COLORS.map(([field, label]) => (
          <ColorInput
            key={field}
            label={label}
            format="hexa"
            swatches={SWATCHES}
            swatchesPerRow={7}
            fixOnBlur={false}
            eyeDropperButtonProps={{ 'aria-label': `Pick ${label.toLowerCase()} from the screen` }}
            value={theme[field]}
            error={
              CSS.supports('color', theme[field]) ? fieldError(`theme.${field}`) : 'Use a CSS color such as #2563eb'
            }
            onChange={(color) => set({ [field]: color })}
          />
        ))}
        <TextInput
          label="Corner radius"
          placeholder="12px"
          value={theme.borderRadius}
          error={
            CSS.supports('border-radius', theme.borderRadius)
              ? fieldError('theme.borderRadius')
              : 'Use a CSS length such as 12px or 0.5rem'
          }
          onChange={(event) => set({ borderRadius: event.currentTarget.value })}
        />
        <TextInput
          label="Font family"
          placeholder="system-ui, sans-serif"
          value={theme.fontFamily}
          error={theme.fontFamily.trim() === '' ? 'Enter at least one font' : fieldError('theme.fontFamily')}
          onChange={(event) => set({ fontFamily: event.currentTarget.value })}
        />
      </SimpleGrid>
      <Readability theme={theme} />
    </Card>
  );
}

function Presets({ onPick }: { onPick: (theme: Partial<Theme>) => void }) {
  return (
    <Group gap="xs" role="group" aria-label="Start from a preset">
      {PRESETS.map(({ name, theme }) => (
        <UnstyledButton key={name} className="preset" onClick={() => onPick(theme)}>
          <span className="preset-dots" aria-hidden>
            {[theme.chatHeaderColor, theme.botMessageColor, theme.backgroundColor].map((color, index) => (
              <span key={index} style={{ background: color }} />
            ))}
          </span>
          <Text size="xs" fw={550}>
            {name}
          </Text>
        </UnstyledButton>
      ))}
    </Group>
  );
}

/** Returns the text and background pairs with too little contrast. */
function Readability({ theme }: { theme: Theme }) {
  const pairs: [string, string, string][] = [
    ['text on the background', theme.textColor, theme.backgroundColor],
    ['text in the agent’s bubble', theme.textColor, theme.botMessageColor],
    ['text in the input', theme.textColor, theme.inputBackgroundColor],
    ['text in the visitor’s bubble', textColorOn(theme.userMessageColor), theme.userMessageColor],
    ['text in the header', textColorOn(theme.chatHeaderColor), theme.chatHeaderColor],
  ];
  const weak = pairs.filter(([, ink, ground]) => (contrast(ink, ground) ?? CONTRAST_MIN) < CONTRAST_MIN);
  if (weak.length === 0) return null;
  return (
    <Alert variant="light" color="yellow" icon={<IconContrast2 />} title="Hard to read">
      {weak.map(([what, ink, ground]) => (
        <Text key={what} size="sm">
          The {what} has a contrast of {contrast(ink, ground)?.toFixed(1)}; at least {CONTRAST_MIN} is easy on the eyes.
        </Text>
      ))}
      <Text size="sm">The widget uses black or white text there instead.</Text>
    </Alert>
  );
}

function Texts({ form, fieldError }: SectionProps) {
  const { fields, set } = form;
  const setWidget = (changes: Partial<WidgetSettings>) => set({ widget: { ...fields.widget, ...changes } });
  return (
    <Card title="Texts">
      <TextInput
        label="Welcome message"
        value={fields.welcomeMessage}
        error={fieldError('welcomeMessage')}
        onChange={(event) => set({ welcomeMessage: event.currentTarget.value })}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <TextInput
          label="Input placeholder"
          value={fields.placeholderText}
          error={fieldError('placeholderText')}
          onChange={(event) => set({ placeholderText: event.currentTarget.value })}
        />
        <TextInput
          label="Button text"
          value={fields.widget.triggerText}
          error={fieldError('widget.triggerText')}
          onChange={(event) => setWidget({ triggerText: event.currentTarget.value })}
        />
      </SimpleGrid>
      <TextInput
        label="Offline message"
        description="Shown while the agent is inactive or unreachable."
        value={fields.widget.offlineMessage}
        error={fieldError('widget.offlineMessage')}
        onChange={(event) => setWidget({ offlineMessage: event.currentTarget.value })}
      />
    </Card>
  );
}

function DisclosureSettings({ form, fieldError }: SectionProps) {
  const { disclosure = DISCLOSURE_DEFAULT } = form.fields;
  const set = (changes: Partial<Disclosure>) => form.set({ disclosure: { ...disclosure, ...changes } });
  return (
    <Card title="Notices" about="Shown in the widget before visitors write.">
      <Switch
        label="Tell visitors that they talk to a machine"
        checked={disclosure.enabled}
        onChange={(event) => set({ enabled: event.currentTarget.checked })}
      />
      {disclosure.enabled ? (
        <TextInput
          label="Notice"
          description="Leave empty for the widget’s own words, in the language of the visitor."
          placeholder="You are chatting with an AI assistant."
          maxLength={500}
          value={disclosure.text}
          error={fieldError('disclosure.text')}
          onChange={(event) => set({ text: event.currentTarget.value })}
        />
      ) : (
        <Alert variant="light" color="yellow" icon={<IconAlertTriangle aria-hidden />}>
          <Text size="sm">People in the EU must be told that they talk to a machine (AI Act, Article 50).</Text>
        </Alert>
      )}
      <TextInput
        label="Privacy policy link"
        placeholder="https://"
        value={disclosure.privacyLink ?? ''}
        error={validateWebAddress(disclosure.privacyLink ?? '') ?? fieldError('disclosure.privacyLink')}
        onChange={(event) => set({ privacyLink: event.currentTarget.value || null })}
      />
    </Card>
  );
}

function Widget({ form }: SectionProps) {
  const { widget } = form.fields;
  const set = (changes: Partial<WidgetSettings>) => form.set({ widget: { ...widget, ...changes } });
  return (
    <Card title="Widget">
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Select
          label="Position"
          value={widget.position}
          onChange={(position) => position && set({ position: position as WidgetSettings['position'] })}
          data={[
            { value: 'bottom-right', label: 'Bottom right' },
            { value: 'bottom-left', label: 'Bottom left' },
            { value: 'top-right', label: 'Top right' },
            { value: 'top-left', label: 'Top left' },
          ]}
        />
        <Select
          label="Size"
          value={widget.size}
          onChange={(size) => size && set({ size: size as WidgetSettings['size'] })}
          data={[
            { value: 'small', label: 'Small' },
            { value: 'medium', label: 'Medium' },
            { value: 'large', label: 'Large' },
          ]}
        />
      </SimpleGrid>
      <Switch
        label="Show agent avatar"
        checked={widget.showAvatar}
        onChange={(event) => set({ showAvatar: event.currentTarget.checked })}
      />
      <Switch
        label="Show message times"
        checked={widget.showTimestamp}
        onChange={(event) => set({ showTimestamp: event.currentTarget.checked })}
      />
      <Switch
        label="Show “Powered by Switchboard”"
        checked={widget.showPoweredBy}
        onChange={(event) => set({ showPoweredBy: event.currentTarget.checked })}
      />
    </Card>
  );
}
