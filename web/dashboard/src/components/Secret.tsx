// A value that is shown this once: a key, a link.
import { Alert, Button, Code, CopyButton, Group, Stack, Text } from '@mantine/core';
import { IconCheck, IconCopy, IconEyeOff } from '@tabler/icons-react';
import type { ReactNode } from 'react';

export function Secret({ value, label, children }: { value: string; label: string; children: ReactNode }) {
  return (
    <Stack gap="sm">
      <Alert variant="light" color="yellow" icon={<IconEyeOff />}>
        {children}
      </Alert>
      <Text size="sm" fw={550}>
        {label}
      </Text>
      <Code block className="text-block" data-testid="secret" tabIndex={0}>
        {value}
      </Code>
      <Group>
        <CopyButton value={value}>
          {({ copied, copy }) => (
            <Button
              onClick={copy}
              leftSection={copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
              data-autofocus
            >
              <span aria-live="polite">{copied ? 'Copied' : 'Copy'}</span>
            </Button>
          )}
        </CopyButton>
      </Group>
    </Stack>
  );
}
