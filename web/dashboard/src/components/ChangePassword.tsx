// Another password for the person who is signed in.
import { Button, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Problem } from '../api/client';
import { changePassword, SESSION_KEY, useSession } from '../api/session';
import { PASSWORD_CHARS_MIN, passwordMistake } from '../password';
import { Dialog } from './Dialog';
import { Trouble } from './Trouble';

export function ChangePassword({ onClose }: { onClose: () => void }) {
  const hasPassword = useSession().user.hasPassword !== false;
  const client = useQueryClient();
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState('');
  const changing = useMutation({
    mutationFn: () => changePassword(next, hasPassword ? current : undefined),
    meta: { isSignIn: true },
    onSuccess: (session) => {
      client.setQueryData(SESSION_KEY, session);
      notifications.show({ color: 'green', message: 'Your password is changed. You are signed out everywhere else.' });
      onClose();
    },
  });
  const mistake = (field: string) =>
    changing.error instanceof Problem && changing.error.param === field ? changing.error.message : undefined;
  const isTold = mistake('currentPassword') !== undefined || mistake('newPassword') !== undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    changing.mutate();
  };
  return (
    <Dialog onClose={onClose} title={hasPassword ? 'Change password' : 'Set a password'}>
      <form onSubmit={submit}>
        <Stack>
          {changing.isError && !isTold && <Trouble error={changing.error} />}
          {!hasPassword && <Text size="sm">You came by a link. With a password you can come back without one.</Text>}
          {hasPassword && (
            <PasswordInput
              label="Current password"
              autoComplete="current-password"
              data-autofocus
              value={current}
              error={mistake('currentPassword') && 'This is not your current password'}
              onChange={(event) => setCurrent(event.currentTarget.value)}
            />
          )}
          <PasswordInput
            label="New password"
            description={`At least ${PASSWORD_CHARS_MIN} characters.`}
            autoComplete="new-password"
            value={next}
            error={mistake('newPassword') ?? passwordMistake(next)}
            onChange={(event) => setNext(event.currentTarget.value)}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={changing.isPending}
              disabled={next === '' || passwordMistake(next) !== undefined}
            >
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
