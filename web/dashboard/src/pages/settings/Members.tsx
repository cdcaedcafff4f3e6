// Members of the organization: roles, invitations, password links.
import { ActionIcon, Avatar, Badge, Button, Group, Menu, Select, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconDots, IconKey, IconLock, IconLockOpen, IconTrash, IconUserPlus } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { createColumnHelper } from '@tanstack/react-table';
import { useMemo, useState } from 'react';
import { useSession } from '../../api/session';
import type { Role, User } from '../../api/types';
import { changeUser, linkFor, removeUser, usersQuery } from '../../api/users';
import { Confirm } from '../../components/Confirm';
import { DataTable } from '../../components/DataTable';
import { Dialog } from '../../components/Dialog';
import { ErrorAlert, notifyError } from '../../components/ErrorAlert';
import { exactTime, When } from '../../components/formats';
import { LoadingRows, Page } from '../../components/Page';
import { SecretDialog } from '../../components/SecretDialog';
import { notifyWithUndo } from '../../components/undo';
import { Invite } from './Invite';
import { ROLES } from './roles';

const column = createColumnHelper<User>();

type DialogState = { what: 'invite' } | { what: 'reset' | 'remove'; user: User };

const STATES = {
  invited: { color: 'yellow', label: 'Invited' },
  active: { color: 'green', label: 'Active' },
  disabled: { color: 'gray', label: 'Disabled' },
} as const;

function columnsFor(self: string, act: (doing: DialogState) => void) {
  return [
    column.accessor('name', {
      header: 'Person',
      cell: ({ row: { original: user } }) => (
        <Group gap="sm" wrap="nowrap">
          <Avatar name={user.name} color="indigo" radius="xl" aria-hidden />
          <div>
            <Text size="sm" fw={550}>
              {user.name}{' '}
              {user.id === self && (
                <Text span c="dimmed" size="sm">
                  (you)
                </Text>
              )}
            </Text>
            <Text size="xs" c="dimmed" className="break">
              {user.email}
            </Text>
          </div>
        </Group>
      ),
    }),
    column.accessor('role', {
      header: 'Role',
      cell: ({ row: { original: user } }) => <RoleOf user={user} isSelf={user.id === self} />,
    }),
    column.accessor('state', {
      header: 'State',
      cell: ({ getValue }) => <Badge color={STATES[getValue()].color}>{STATES[getValue()].label}</Badge>,
    }),
    column.accessor('createdAt', { header: 'Created', cell: ({ getValue }) => <When at={getValue()} /> }),
    column.display({
      id: 'actions',
      header: () => <span className="visually-hidden">Actions</span>,
      cell: ({ row: { original: user } }) => user.id !== self && <Actions user={user} act={act} />,
    }),
  ];
}

/** Time for which a promotion to owner can be undone, in milliseconds. */
const UNDO_MS = 15_000;

function RoleOf({ user, isSelf }: { user: User; isSelf: boolean }) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const [isPromoting, setPromoting] = useState(false);
  const changing = useMutation({
    mutationFn: (role: Role) => changeUser(org, user.id, { role }),
    onSuccess: () => client.invalidateQueries({ queryKey: [org, 'users'] }),
  });
  const change = async (role: Role) => {
    const before = user.role;
    await changing.mutateAsync(role);
    const message = `${user.name} is now ${ROLES[role].label.toLowerCase()}.`;
    const undo = () => changing.mutateAsync(before).catch(notifyError);
    if (role === 'owner') notifyWithUndo(message, UNDO_MS, undo);
    else notifications.show({ color: 'green', message });
  };
  // Users cannot change their own role, so that they do not lock themselves out.
  if (isSelf) return <Text size="sm">{ROLES[user.role].label}</Text>;
  return (
    <>
      <Select
        aria-label={`Role of ${user.name}`}
        size="xs"
        w={130}
        disabled={changing.isPending}
        value={user.role}
        data={Object.entries(ROLES).map(([value, { label }]) => ({ value, label }))}
        onChange={(role) => {
          if (role === null || role === user.role) return;
          if (role === 'owner') setPromoting(true);
          else void change(role as Role).catch(notifyError);
        }}
      />
      {isPromoting && (
        <Confirm
          title={`Make ${user.name} an owner?`}
          action="Make owner"
          onConfirm={() => change('owner')}
          onClose={() => setPromoting(false)}
        >
          Owners can do everything: manage members, API keys and providers, and remove you.
        </Confirm>
      )}
    </>
  );
}

function Actions({ user, act }: { user: User; act: (doing: DialogState) => void }) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const toggle = useMutation({
    mutationFn: () => changeUser(org, user.id, { state: user.state === 'disabled' ? 'active' : 'disabled' }),
    onSuccess: () => client.invalidateQueries({ queryKey: [org, 'users'] }),
    onError: notifyError,
  });
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${user.name}`}>
          <IconDots size={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          disabled={user.state === 'disabled'}
          leftSection={<IconKey size={16} aria-hidden />}
          onClick={() => act({ what: 'reset', user })}
        >
          {user.state === 'invited' ? 'Create invitation link' : 'Create password link'}
        </Menu.Item>
        <Menu.Item
          leftSection={
            user.state === 'disabled' ? <IconLockOpen size={16} aria-hidden /> : <IconLock size={16} aria-hidden />
          }
          onClick={() => toggle.mutate()}
        >
          {user.state === 'disabled' ? 'Enable' : 'Disable'}
        </Menu.Item>
        <Menu.Item
          color="red"
          leftSection={<IconTrash size={16} aria-hidden />}
          onClick={() => act({ what: 'remove', user })}
        >
          Remove
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

export function Members() {
  const { organization, user: self } = useSession();
  const users = useQuery(usersQuery(organization.id));
  const client = useQueryClient();
  const [doing, setDoing] = useState<DialogState>();
  const columns = useMemo(() => columnsFor(self.id, setDoing), [self.id]);
  const close = () => setDoing(undefined);
  const gone = async (user: User) => {
    await removeUser(organization.id, user.id);
    await client.invalidateQueries({ queryKey: [organization.id, 'users'] });
  };
  return (
    <Page
      title="Members"
      about={`People who can sign in to ${organization.name}, with their roles.`}
      actions={
        <Button leftSection={<IconUserPlus size={16} aria-hidden />} onClick={() => setDoing({ what: 'invite' })}>
          Invite
        </Button>
      }
    >
      {users.isPending && <LoadingRows />}
      {users.isError && <ErrorAlert error={users.error} retry={() => void users.refetch()} />}
      {users.data !== undefined && (
        <DataTable label="Members" rows={users.data} columns={columns} rowId={(user) => user.id} />
      )}
      {doing?.what === 'invite' && <Invite onClose={close} />}
      {doing?.what === 'reset' && <Reset user={doing.user} onClose={close} />}
      {doing?.what === 'remove' && (
        <Confirm
          title={`Remove ${doing.user.name}?`}
          action="Remove"
          onConfirm={() => gone(doing.user)}
          onClose={close}
        >
          They are signed out immediately and cannot sign in again. Their changes stay.
        </Confirm>
      )}
    </Page>
  );
}

function Reset({ user, onClose }: { user: User; onClose: () => void }) {
  const org = useSession().organization.id;
  const creation = useMutation({ mutationFn: () => linkFor(org, user.id) });
  if (creation.data !== undefined) {
    return (
      <SecretDialog
        title={`Link for ${user.name}`}
        label="One-time link"
        value={creation.data.link.url}
        onClose={onClose}
      >
        Send it to {user.name}. It works once, until {exactTime(creation.data.link.expiresAt)}, and is not shown again.
      </SecretDialog>
    );
  }
  return (
    <Dialog onClose={onClose} title={`Link for ${user.name}`} size="lg">
      <Stack>
        {creation.isError && <ErrorAlert error={creation.error} />}
        <Text size="sm">{user.name} can set a new password with this link. Earlier links stop working.</Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button loading={creation.isPending} onClick={() => creation.mutate()} data-autofocus>
            Create link
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
