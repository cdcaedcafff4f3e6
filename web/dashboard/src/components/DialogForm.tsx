// Dialog with fields, an error, and buttons to submit and cancel.
import { Button, Group, Stack } from '@mantine/core';
import type { FormEvent, ReactNode } from 'react';
import { useHold } from '../use-held-session';
import { Dialog } from './Dialog';
import { ErrorAlert } from './ErrorAlert';

interface DialogFormProps {
  title: string;
  /** Label of the submit button, for example “Create key”. */
  action: string;
  /** Error that no field shows. */
  error: unknown;
  isPending: boolean;
  isIncomplete: boolean;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

export function DialogForm(props: DialogFormProps) {
  const { title, action, error, isPending, isIncomplete, onSubmit, onClose, children } = props;
  useHold(true);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <Dialog onClose={onClose} title={title}>
      <form onSubmit={submit}>
        <Stack>
          {error != null && <ErrorAlert error={error} />}
          {children}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isPending} disabled={isIncomplete}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
