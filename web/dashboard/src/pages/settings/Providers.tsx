// List of providers: endpoints that speak the OpenAI protocol.
import { ActionIcon, Badge, Button, Group, Text } from '@mantine/core';
import { IconPencil, IconPlugConnected, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { createColumnHelper } from '@tanstack/react-table';
import { useMemo, useState } from 'react';
import { listQuery } from '../../api/resources';
import { useMay, useSession } from '../../api/session';
import type { Provider } from '../../api/types';
import { DataTable } from '../../components/DataTable';
import { EmptyState } from '../../components/EmptyState';
import { ErrorAlert } from '../../components/ErrorAlert';
import { LoadingRows, Page } from '../../components/Page';
import { RIGHTS } from '../../rights';
import { EditProvider } from './EditProvider';

const route = getRouteApi('/inside/settings/providers');

const column = createColumnHelper<Provider>();

function columnsFor(edit: ((provider: Provider) => void) | undefined) {
  return [
    column.accessor('slug', {
      header: 'Provider',
      cell: ({ row: { original: provider } }) => (
        <>
          <Text size="sm" fw={550}>
            {provider.slug}
          </Text>
          <Text size="xs" c="dimmed" className="break">
            {provider.baseUrl}
          </Text>
        </>
      ),
    }),
    column.accessor('model', { header: 'Model' }),
    column.accessor((provider) => provider.embeddingModel ?? '', {
      id: 'embedding',
      header: 'Embeddings',
      cell: ({ getValue }) =>
        getValue() || (
          <Text size="sm" c="dimmed">
            None
          </Text>
        ),
    }),
    column.accessor('hasApiKey', {
      header: 'Key',
      cell: ({ getValue }) => (getValue() ? <Badge color="green">Set</Badge> : <Badge color="gray">None</Badge>),
    }),
    ...(edit === undefined
      ? []
      : [
          column.display({
            id: 'actions',
            header: () => <span className="visually-hidden">Actions</span>,
            cell: ({ row: { original: provider } }) => (
              <Group justify="flex-end">
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  aria-label={`Edit ${provider.slug}`}
                  onClick={() => edit(provider)}
                >
                  <IconPencil size={18} aria-hidden />
                </ActionIcon>
              </Group>
            ),
          }),
        ]),
  ];
}

export function Providers() {
  const org = useSession().organization.id;
  const mayConfigure = useMay(RIGHTS.configure);
  const providers = useQuery(listQuery(org, 'providers'));
  const [chosen, setEditing] = useState<Provider | 'new'>();
  const navigate = useNavigate();
  const { provider: linked } = route.useSearch();
  const editing = chosen ?? (mayConfigure ? providers.data?.find(({ slug }) => slug === linked) : undefined);
  const close = () => {
    setEditing(undefined);
    if (linked !== undefined) void navigate({ to: '.', search: {}, replace: true });
  };
  const columns = useMemo(() => columnsFor(mayConfigure ? setEditing : undefined), [mayConfigure]);
  const newProvider = mayConfigure && (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setEditing('new')}>
      New provider
    </Button>
  );
  return (
    <Page
      title="Providers"
      about="Endpoints that speak the OpenAI protocol. Agents without a provider use the model of the installation or, without one, the first provider."
      actions={(providers.data?.length ?? 0) > 0 && newProvider}
    >
      {providers.isPending && <LoadingRows />}
      {providers.isError && <ErrorAlert error={providers.error} retry={() => void providers.refetch()} />}
      {providers.data?.length === 0 && (
        <EmptyState icon={IconPlugConnected} title="Add your first provider" action={newProvider}>
          Agents without a provider of their own will use it unless the installation has a model. Any endpoint that
          speaks the OpenAI protocol works.
        </EmptyState>
      )}
      {providers.data !== undefined && providers.data.length > 0 && (
        <DataTable
          label="Providers"
          rows={providers.data}
          columns={columns}
          rowId={(provider) => provider.id}
          {...(mayConfigure && { onOpen: setEditing })}
        />
      )}
      {editing !== undefined && <EditProvider provider={editing === 'new' ? undefined : editing} onClose={close} />}
    </Page>
  );
}
