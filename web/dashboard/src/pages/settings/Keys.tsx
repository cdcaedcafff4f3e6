// List of API keys: create, rotate, delete.
import { ActionIcon, Badge, Button, Code, Group, Menu, Text } from '@mantine/core';
import { IconDots, IconKey, IconPlus, IconRefresh, IconTrash } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createColumnHelper } from '@tanstack/react-table';
import { useMemo, useState } from 'react';
import { listQuery, remove } from '../../api/resources';
import { useMay, useSession } from '../../api/session';
import type { ApiKey } from '../../api/types';
import { Confirm } from '../../components/Confirm';
import { DataTable } from '../../components/DataTable';
import { EmptyState } from '../../components/EmptyState';
import { ErrorAlert } from '../../components/ErrorAlert';
import { When } from '../../components/formats';
import { LoadingRows, Page } from '../../components/Page';
import { RIGHTS } from '../../rights';
import { CreateKey } from './CreateKey';
import { RotateKey } from './RotateKey';

const column = createColumnHelper<ApiKey>();

type DialogState = { what: 'create' } | { what: 'rotate' | 'delete'; key: ApiKey };

function columnsFor(act: ((doing: DialogState) => void) | undefined) {
  return [
    column.accessor('name', {
      header: 'Name',
      cell: ({ row: { original: key } }) => (
        <>
          <Text size="sm" fw={550}>
            {key.name}
          </Text>
          <Code>svc_live_…{key.lastFour}</Code>
        </>
      ),
    }),
    column.accessor((key) => key.scopes.join(), {
      id: 'scopes',
      header: 'Scopes',
      enableSorting: false,
      cell: ({ row: { original: key } }) => <Scopes scopes={key.scopes} />,
    }),
    column.accessor('expiresAt', { header: 'Expires', cell: ({ getValue }) => <Expiry at={getValue()} /> }),
    column.accessor('createdAt', { header: 'Created', cell: ({ getValue }) => <When at={getValue()} /> }),
    column.accessor('lastUsedAt', { header: 'Last used', cell: ({ getValue }) => <LastUse at={getValue()} /> }),
    ...(act === undefined
      ? []
      : [
          column.display({
            id: 'actions',
            header: () => <span className="visually-hidden">Actions</span>,
            cell: ({ row: { original: key } }) => <Actions apiKey={key} act={act} />,
          }),
        ]),
  ];
}

function Scopes({ scopes }: { scopes: ApiKey['scopes'] }) {
  if (scopes.length === 0) return <Badge color="gray">all scopes</Badge>;
  return (
    <Group gap={4}>
      {scopes.map((scope) => (
        <Badge key={scope}>{scope}</Badge>
      ))}
    </Group>
  );
}

function Expiry({ at }: { at: string | null }) {
  if (at === null)
    return (
      <Text size="sm" c="dimmed">
        Never
      </Text>
    );
  return new Date(at).getTime() <= Date.now() ? <Badge color="red">Expired</Badge> : <When at={at} />;
}

function LastUse({ at }: { at: string | null }) {
  return at ? (
    <When at={at} />
  ) : (
    <Text size="sm" c="dimmed">
      Not yet
    </Text>
  );
}

function Actions({ apiKey, act }: { apiKey: ApiKey; act: (doing: DialogState) => void }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${apiKey.name}`}>
          <IconDots size={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={<IconRefresh size={16} aria-hidden />}
          onClick={() => act({ what: 'rotate', key: apiKey })}
        >
          Rotate
        </Menu.Item>
        <Menu.Item
          color="red"
          leftSection={<IconTrash size={16} aria-hidden />}
          onClick={() => act({ what: 'delete', key: apiKey })}
        >
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

export function Keys() {
  const org = useSession().organization.id;
  const mayManage = useMay(RIGHTS.manageKeys);
  const keys = useQuery(listQuery(org, 'keys'));
  const client = useQueryClient();
  const [doing, setDoing] = useState<DialogState>();
  const columns = useMemo(() => columnsFor(mayManage ? setDoing : undefined), [mayManage]);
  const close = () => setDoing(undefined);
  const gone = async (key: ApiKey) => {
    await remove(org, 'keys', key.id);
    await client.invalidateQueries({ queryKey: [org, 'keys'] });
  };
  const newKey = mayManage && (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setDoing({ what: 'create' })}>
      New key
    </Button>
  );
  return (
    <Page
      title="API keys"
      about="For programs that use the public API. Pages with the widget need none."
      actions={(keys.data?.length ?? 0) > 0 && newKey}
    >
      {keys.isPending && <LoadingRows />}
      {keys.isError && <ErrorAlert error={keys.error} retry={() => void keys.refetch()} />}
      {keys.data?.length === 0 && (
        <EmptyState icon={IconKey} title="Create your first API key" action={newKey}>
          Use one key per program and environment, with only the scopes it needs.
        </EmptyState>
      )}
      {keys.data !== undefined && keys.data.length > 0 && (
        <DataTable label="API keys" rows={keys.data} columns={columns} rowId={(key) => key.id} />
      )}
      {doing?.what === 'create' && <CreateKey onClose={close} />}
      {doing?.what === 'rotate' && <RotateKey apiKey={doing.key} onClose={close} />}
      {doing?.what === 'delete' && (
        <Confirm
          title={`Delete “${doing.key.name}”?`}
          action="Delete key"
          onConfirm={() => gone(doing.key)}
          onClose={close}
        >
          Programs that use <Code>svc_live_…{doing.key.lastFour}</Code> are rejected within two seconds. This cannot be
          undone.
        </Confirm>
      )}
    </Page>
  );
}
