// Makes an account, and the one-time link with which its owner chooses a password.
import { Button, Group, Radio, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Problem } from '../../api/client';
import { invite } from '../../api/people';
import { useSession } from '../../api/session';
import type { Role } from '../../api/types';
import { Dialog } from '../../components/Dialog';
import { exactTime } from '../../components/Facts';
import { Secret } from '../../components/Secret';
import { Trouble } from '../../components/Trouble';
import { ROLES } from './roles';

export function Invite({ onClose }: { onClose: () => void }) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const [person, setPerson] = useState({ email: '', name: '', role: 'viewer' as Role });
  const inviting = useMutation({
    mutationFn: () => invite(org, { ...person, email: person.email.trim(), name: person.name.trim() }),
    onSuccess: () => client.invalidateQueries({ queryKey: [org, 'users'] }),
  });
  const mistake = (field: string) =>
    inviting.error instanceof Problem && inviting.error.param === field ? inviting.error.message : undefined;
  if (inviting.isSuccess) {
    return (
      <Dialog onClose={onClose} title="Invitation" size="lg" closeOnClickOutside={false}>
        <Stack>
          <Secret value={inviting.data.link.url} label={`Link for ${inviting.data.name}`}>
            Send it yourself, by a way that you trust. It works once, and until{' '}
            {exactTime(inviting.data.link.expiresAt)}. It is shown this once.
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
  const submit = (event: FormEvent) => {
    event.preventDefault();
    inviting.mutate();
  };
  return (
    <Dialog onClose={onClose} title="Invite somebody">
      <form onSubmit={submit}>
        <Stack>
          {inviting.isError && <Trouble error={inviting.error} />}
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
            label="E-mail"
            type="email"
            required
            withAsterisk={false}
            value={person.email}
            error={mistake('email')}
            onChange={(event) => setPerson({ ...person, email: event.currentTarget.value })}
          />
          <Radio.Group
            label="Role"
            value={person.role}
            onChange={(role) => setPerson({ ...person, role: role as Role })}
          >
            <Stack gap="xs" mt="xs">
              {Object.entries(ROLES).map(([role, { label, about }]) => (
                <Radio key={role} value={role} label={label} description={about} />
              ))}
            </Stack>
          </Radio.Group>
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button
              type="submit"
              loading={inviting.isPending}
              disabled={person.name.trim() === '' || person.email.trim() === ''}
            >
              Make the invitation
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
