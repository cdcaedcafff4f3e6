// Confirmation of an action that cannot be undone.
import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Dialog } from './Dialog';
import { RemovalError } from './RemovalError';

interface ConfirmProps {
  title: string;
  children: ReactNode;
  /** Label of the confirm button, for example “Delete key”. */
  action: string;
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
}

export function Confirm({ title, children, action, onConfirm, onClose }: ConfirmProps) {
  const done = useMutation({ mutationFn: onConfirm, onSuccess: onClose });
  return (
    <Dialog onClose={onClose} title={title}>
      <Stack>
        <Text size="sm" component="div">
          {children}
        </Text>
        {done.isError && <RemovalError error={done.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button color="red" loading={done.isPending} onClick={() => done.mutate()}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
