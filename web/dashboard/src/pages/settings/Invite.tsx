// Creates a user and the one-time link to choose a password.
import { Radio, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { mistakeIn } from '../../api/client';
import { invite } from '../../api/people';
import { useSession } from '../../api/session';
import type { Role } from '../../api/types';
import { DialogForm } from '../../components/DialogForm';
import { exactTime } from '../../components/Facts';
import { SecretDialog } from '../../components/SecretDialog';
import { ROLES } from './roles';

export function Invite({ onClose }: { onClose: () => void }) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const [person, setPerson] = useState({ email: '', name: '', role: 'viewer' as Role });
  const inviting = useMutation({
    mutationFn: () => invite(org, { ...person, email: person.email.trim(), name: person.name.trim() }),
    onSuccess: () => client.invalidateQueries({ queryKey: [org, 'users'] }),
  });
  const mistake = (field: string) => mistakeIn(inviting.error, field);
  if (inviting.isSuccess) {
    return (
      <SecretDialog
        title="Invitation"
        label={`Link for ${inviting.data.name}`}
        value={inviting.data.link.url}
        onClose={onClose}
      >
        Send it over a channel that you trust. It works once, until {exactTime(inviting.data.link.expiresAt)}, and is
        not shown again.
      </SecretDialog>
    );
  }
  return (
    <DialogForm
      title="Invite member"
      action="Create invitation link"
      trouble={inviting.error}
      isPending={inviting.isPending}
      isIncomplete={person.name.trim() === '' || person.email.trim() === ''}
      onSubmit={() => inviting.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        required
        withAsterisk={false}
        data-autofocus
        maxLength={200}
        value={person.name}
        error={mistake('name')}
        onChange={(event) => setPerson({ ...person, name: event.currentTarget.value })}
      />
      <TextInput
        label="Email"
        type="email"
        required
        withAsterisk={false}
        value={person.email}
        error={mistake('email')}
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
