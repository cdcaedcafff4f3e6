// Creates a user and the one-time link to choose a password.
import { Radio, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { findFieldError } from '../../api/client';
import { useSession } from '../../api/session';
import type { Role } from '../../api/types';
import { invite } from '../../api/users';
import { DialogForm } from '../../components/DialogForm';
import { exactTime } from '../../components/formats';
import { SecretDialog } from '../../components/SecretDialog';
import { ROLES } from './roles';

export function Invite({ onClose }: { onClose: () => void }) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const [person, setPerson] = useState({ email: '', name: '', role: 'viewer' as Role });
  const invitation = useMutation({
    mutationFn: () => {
      const name = person.name.trim();
      return invite(org, { email: person.email.trim(), role: person.role, ...(name !== '' && { name }) });
    },
    onSuccess: () => client.invalidateQueries({ queryKey: [org, 'users'] }),
  });
  const fieldError = (field: string) => findFieldError(invitation.error, field);
  if (invitation.isSuccess) {
    return (
      <SecretDialog
        title="Invitation"
        label={`Link for ${invitation.data.name}`}
        value={invitation.data.link.url}
        onClose={onClose}
      >
        Send it over a channel that you trust. It works once, until {exactTime(invitation.data.link.expiresAt)}, and is
        not shown again.
      </SecretDialog>
    );
  }
  return (
    <DialogForm
      title="Invite member"
      action="Create invitation link"
      error={invitation.error}
      isPending={invitation.isPending}
      isIncomplete={person.email.trim() === ''}
      onSubmit={() => invitation.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="Optional; the email by default"
        data-autofocus
        maxLength={200}
        value={person.name}
        error={fieldError('name')}
        onChange={(event) => setPerson({ ...person, name: event.currentTarget.value })}
      />
      <TextInput
        label="Email"
        type="email"
        required
        withAsterisk={false}
        value={person.email}
        error={fieldError('email')}
        onChange={(event) => setPerson({ ...person, email: event.currentTarget.value })}
      />
      <Radio.Group label="Role" value={person.role} onChange={(role) => setPerson({ ...person, role: role as Role })}>
        <Stack gap="xs" mt="xs">
          {Object.entries(ROLES).map(([role, { label, about }]) => (
            <Radio key={role} value={role} label={label} description={about} />
          ))}
        </Stack>
      </Radio.Group>
    </DialogForm>
  );
}
