// Dialog that changes the password of the signed-in user.
import { PasswordInput, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { findFieldError } from '../api/client';
import { changePassword, SESSION_KEY, useSession } from '../api/session';
import { PASSWORD_CHARS_MIN, validatePassword } from '../password';
import { DialogForm } from './DialogForm';

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
      notifications.show({
        color: 'green',
        message: `Password ${hasPassword ? 'changed' : 'set'}. Your other sessions were signed out.`,
      });
      onClose();
    },
  });
  const fieldError = (field: string) => findFieldError(changing.error, field);
  const isTold = fieldError('currentPassword') !== undefined || fieldError('newPassword') !== undefined;
  return (
    <DialogForm
      title={hasPassword ? 'Change password' : 'Set a password'}
      action="Save"
      error={isTold ? null : changing.error}
      isPending={changing.isPending}
      isIncomplete={next === '' || validatePassword(next) !== undefined}
      onSubmit={() => changing.mutate()}
      onClose={onClose}
    >
      {!hasPassword && <Text size="sm">You signed in with a link. Set a password to sign in without one.</Text>}
      {hasPassword && (
        <PasswordInput
          label="Current password"
          autoComplete="current-password"
          data-autofocus
          value={current}
          error={fieldError('currentPassword') && 'This is not your current password'}
          onChange={(event) => setCurrent(event.currentTarget.value)}
        />
      )}
      <PasswordInput
        label="New password"
        description={`At least ${PASSWORD_CHARS_MIN} characters.`}
        autoComplete="new-password"
        value={next}
        error={fieldError('newPassword') ?? validatePassword(next)}
        onChange={(event) => setNext(event.currentTarget.value)}
      />
    </DialogForm>
  );
}
