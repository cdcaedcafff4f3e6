// Value that is shown only once: a key or a link.
import { Alert, Code, Group, Stack, Text } from '@mantine/core';
import { IconEyeOff } from '@tabler/icons-react';
import { type ReactNode, useRef } from 'react';
import { CopyButton } from './CopyButton';

export function Secret({ value, label, children }: { value: string; label: string; children: ReactNode }) {
  const shown = useRef<HTMLPreElement>(null);
  return (
    <Stack gap="sm">
      <Alert variant="light" color="yellow" icon={<IconEyeOff />}>
        {children}
      </Alert>
      <Text size="sm" fw={550}>
        {label}
      </Text>
      <Code block ref={shown} className="text-block" data-testid="secret" tabIndex={0}>
        {value}
      </Code>
      <Group>
        <CopyButton value={value} shown={shown} data-autofocus />
      </Group>
    </Stack>
  );
}
