// Conversations as a column, latest first: visitor, first words and how the latest reply ended.
import { Badge, Button, Group, Paper, Stack, Text } from '@mantine/core';
import { IconMessages } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { conversationsQuery } from '../../api/conversations';
import { listQuery } from '../../api/resources';
import { useSession } from '../../api/session';
import type { ListedConversation } from '../../api/types';
import { EmptyState } from '../../components/EmptyState';
import { ErrorAlert } from '../../components/ErrorAlert';
import { Stars, When } from '../../components/formats';
import { LoadingRows } from '../../components/Page';
import type { ConversationSearch } from '../../router';
import { filterOf } from './filter';
import { visitorOf } from './visitor';

/** Ends of a reply that are worth a look. */
const ENDS: Partial<Record<string, { color: string; label: string }>> = {
  incomplete: { color: 'orange', label: 'Interrupted' },
  cancelled: { color: 'gray', label: 'Stopped' },
  failed: { color: 'red', label: 'Failed' },
};

interface ConversationColumnProps {
  search: ConversationSearch;
  /** Id of the open conversation. */
  selected?: string;
  onClear: () => void;
}

export function ConversationColumn({ search, selected, onClear }: ConversationColumnProps) {
  const org = useSession().organization.id;
  const agents = useQuery(listQuery(org, 'agents')).data ?? [];
  const teams = useQuery(listQuery(org, 'teams')).data ?? [];
  const conversations = useInfiniteQuery(conversationsQuery(org, filterOf(search)));
  const names = new Map([...agents, ...teams].map((resource) => [resource.id, resource.name]));
  const rows = conversations.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack gap="sm">
      {conversations.isPending && <LoadingRows />}
      {conversations.isError && <ErrorAlert error={conversations.error} retry={() => void conversations.refetch()} />}
      {conversations.isSuccess && rows.length === 0 && !conversations.hasNextPage && (
        <None isFiltered={Object.keys(search).length > 0} onClear={onClear} />
      )}
      {rows.length > 0 && (
        <Paper className="panel plain-list" component="ul" aria-label="Conversations">
          {rows.map((row) => (
            <Row
              key={row.id}
              conversation={row}
              owner={names.get(row.agentId ?? row.teamId ?? '') ?? 'Deleted'}
              search={search}
              isSelected={row.id === selected}
            />
          ))}
        </Paper>
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
    </Stack>
  );
}

interface RowProps {
  conversation: ListedConversation;
  /** Name of the agent or team. */
  owner: string;
  search: ConversationSearch;
  isSelected: boolean;
}

function Row({ conversation, owner, search, isSelected }: RowProps) {
  const visitor = visitorOf(conversation);
  const end = conversation.lastStatus === null ? undefined : ENDS[conversation.lastStatus];
  return (
    <li className="list-row inbox-row" data-selected={isSelected}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm" truncate component="div">
          <Link
            to="/conversations/$id"
            params={{ id: conversation.id }}
            search={search}
            className="row-link"
            aria-current={isSelected ? 'true' : undefined}
          >
            {visitor.label}
          </Link>
        </Text>
        <When at={conversation.updatedAt} />
      </Group>
      <Text size="sm" lineClamp={2} className="break">
        {conversation.excerpt}
      </Text>
      <Group gap={6} mt={2}>
        {conversation.activeMessageId !== null && <Badge color="green">live</Badge>}
        {end !== undefined && <Badge color={end.color}>{end.label}</Badge>}
        {typeof conversation.metadata['rating'] === 'number' && <Stars rating={conversation.metadata['rating']} />}
        <Text size="xs" c="dimmed" truncate>
          {owner}
          {conversation.teamId !== null && ' (team)'} ·{' '}
          {conversation.messageCount === 1 ? '1 message' : `${conversation.messageCount} messages`}
        </Text>
      </Group>
    </li>
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
        Change the words, the dates or the visitor. Part of a word, name, email address or id is enough.
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
