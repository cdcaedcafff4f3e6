// Shows a secret until the user confirms having copied it; clicking outside does not close it.
import { Button, Group, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { useHold } from '../use-held-session';
import { Dialog } from './Dialog';
import { Secret } from './Secret';

interface SecretDialogProps {
  title: string;
  label: string;
  value: string;
  onClose: () => void;
  children: ReactNode;
}

export function SecretDialog({ title, label, value, onClose, children }: SecretDialogProps) {
  useHold(true);
  return (
    <Dialog
      onClose={onClose}
      title={title}
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack>
        <Secret value={value} label={label}>
          {children}
        </Secret>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Done
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
