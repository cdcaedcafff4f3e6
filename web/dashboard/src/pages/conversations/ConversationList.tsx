// List of conversations, latest first, with filters in the URL.
import { Badge, Button, Group, Text } from '@mantine/core';
import { IconMessages } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { createColumnHelper } from '@tanstack/react-table';
import { useMemo } from 'react';
import { conversationsQuery } from '../../api/conversations';
import { listQuery } from '../../api/resources';
import { useMay, useSession } from '../../api/session';
import type { ConversationSummary } from '../../api/types';
import { DataTable } from '../../components/DataTable';
import { EmptyState } from '../../components/EmptyState';
import { ErrorAlert } from '../../components/ErrorAlert';
import { Stars, When } from '../../components/formats';
import { LoadingRows, Page } from '../../components/Page';
import { RIGHTS } from '../../rights';
import type { ConversationSearch } from '../../router';
import { ExportMenu } from './ExportMenu';
import { Filters } from './Filters';
import { filterOf } from './filter';
import { VisitorErasure } from './VisitorErasure';
import { visitorOf } from './visitor';

const route = getRouteApi('/inside/conversations');
const column = createColumnHelper<ConversationSummary>();

function columnsFor(nameOf: (conversation: ConversationSummary) => string) {
  return [
    column.accessor((conversation) => visitorOf(conversation).label, {
      id: 'visitor',
      header: 'Visitor',
      enableSorting: false,
      cell: ({ row: { original: conversation }, getValue }) => (
        <>
          <Link to="/conversations/$id" params={{ id: conversation.id }} className="row-link">
            {getValue()}
          </Link>
          {visitorOf(conversation).name !== undefined && (
            <Text size="xs" c="dimmed">
              {visitorOf(conversation).email}
            </Text>
          )}
        </>
      ),
    }),
    column.accessor(nameOf, {
      id: 'with',
      header: 'Agent',
      enableSorting: false,
      cell: ({ row: { original: conversation }, getValue }) => (
        <Group gap={6} wrap="nowrap">
          <Text size="sm">{getValue()}</Text>
          {conversation.teamId !== null && <Badge color="gray">Team</Badge>}
        </Group>
      ),
    }),
    column.accessor('messageCount', {
      header: 'Messages',
      enableSorting: false,
      cell: ({ row: { original: conversation }, getValue }) => (
        <Group gap={6} wrap="nowrap">
          <Text size="sm">{getValue()}</Text>
          {conversation.activeMessageId !== null && <Badge color="green">live</Badge>}
        </Group>
      ),
    }),
    column.accessor((conversation) => conversation.metadata['rating'], {
      id: 'rating',
      header: 'Rating',
      enableSorting: false,
      cell: ({ getValue }) => <Stars rating={getValue()} />,
    }),
    column.accessor('createdAt', {
      header: 'Started',
      enableSorting: false,
      cell: ({ getValue }) => <When at={getValue()} />,
    }),
    column.accessor('updatedAt', {
      header: 'Last message',
      enableSorting: false,
      cell: ({ getValue }) => <When at={getValue()} />,
    }),
  ];
}

export function ConversationList() {
  const org = useSession().organization.id;
  const search = route.useSearch();
  const navigate = useNavigate();
  const mayAct = useMay(RIGHTS.actOnConversations);
  const agents = useQuery(listQuery(org, 'agents'));
  const teams = useQuery(listQuery(org, 'teams'));
  const conversations = useInfiniteQuery(conversationsQuery(org, filterOf(search)));
  const columns = useMemo(() => {
    const names = new Map(
      [...(agents.data ?? []), ...(teams.data ?? [])].map((resource) => [resource.id, resource.name]),
    );
    return columnsFor((conversation) => names.get(conversation.agentId ?? conversation.teamId ?? '') ?? 'Deleted');
  }, [agents.data, teams.data]);
  const rows = conversations.data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = Object.keys(search).length > 0;
  const clear = () => void navigate({ to: '/conversations', search: {} });
  return (
    <Page
      title="Conversations"
      about="Messages of visitors and replies of agents. The list updates automatically."
      actions={
        mayAct && (
          <Group gap="xs">
            <ExportMenu org={org} filter={filterOf(search)} />
            <VisitorErasure org={org} />
          </Group>
        )
      }
    >
      <Filters
        search={search}
        agents={agents.data ?? []}
        teams={teams.data ?? []}
        onChange={(changes) =>
          void navigate({
            to: '/conversations',
            search: (before: ConversationSearch) => ({ ...before, ...changes }),
            replace: true,
          })
        }
        onClear={clear}
      />
      {conversations.isPending && <LoadingRows />}
      {conversations.isError && <ErrorAlert error={conversations.error} retry={() => void conversations.refetch()} />}
      {conversations.isSuccess && rows.length === 0 && !conversations.hasNextPage && (
        <None isFiltered={isFiltered} onClear={clear} />
      )}
      {rows.length > 0 && (
        <DataTable
          label="Conversations"
          rows={rows}
          columns={columns}
          rowId={(row) => row.id}
          onOpen={(row) => void navigate({ to: '/conversations/$id', params: { id: row.id } })}
        />
      )}
      {conversations.hasNextPage && (
        <Group justify="center">
          <Button
            variant="default"
            loading={conversations.isFetchingNextPage}
            onClick={() => void conversations.fetchNextPage()}
          >
            {rows.length === 0 ? 'No match among the latest. Search older ones' : 'Show older conversations'}
          </Button>
        </Group>
      )}
    </Page>
  );
}

function None({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  if (isFiltered) {
    return (
      <EmptyState
        icon={IconMessages}
        title="No conversations match"
        action={
          <Button variant="default" onClick={onClear}>
            Clear filters
          </Button>
        }
      >
        Change the dates or the visitor. Part of a name, email address or id is enough.
      </EmptyState>
    );
  }
  return (
    <EmptyState
      icon={IconMessages}
      title="No conversations yet"
      action={
        <Button component={Link} to="/agents">
          Go to agents
        </Button>
      }
    >
      They appear when a visitor sends a message. Playground runs are not listed.
    </EmptyState>
  );
}
