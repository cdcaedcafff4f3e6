// List of agents.
import { Badge, Button, Group, Text, TextInput } from '@mantine/core';
import { IconPlus, IconRobot, IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { createColumnHelper } from '@tanstack/react-table';
import { useState } from 'react';
import { listQuery } from '../../api/resources';
import { useMay, useSession } from '../../api/session';
import type { AgentItem } from '../../api/types';
import { DataTable } from '../../components/DataTable';
import { EmptyState } from '../../components/EmptyState';
import { ErrorAlert } from '../../components/ErrorAlert';
import { StatusBadge } from '../../components/formats';
import { LoadingRows, Page } from '../../components/Page';
import { RIGHTS } from '../../rights';
import { AgentAvatar } from './AgentAvatar';
import { NewAgent } from './NewAgent';

const SEARCH_FROM_AGENTS = 6;
/** Domains that the list of agents contains at most. */
const LISTED_DOMAINS = 3;
const column = createColumnHelper<AgentItem>();

const columns = [
  column.accessor('name', {
    header: 'Agent',
    cell: ({ row: { original: agent } }) => (
      <Group gap="sm" wrap="nowrap">
        <AgentAvatar agent={agent} />
        <div>
          <Link to="/agents/$id" params={{ id: agent.id }} className="row-link">
            {agent.name}
          </Link>
          <Text size="xs" c="dimmed" lineClamp={1} maw={420}>
            {agent.description || agent.slug}
          </Text>
        </div>
      </Group>
    ),
  }),
  column.accessor('status', {
    header: 'Status',
    cell: ({ row: { original: agent } }) => <StatusBadge status={agent.status} isPublic={agent.public} />,
  }),
  column.accessor((agent) => agent.provider ?? '', {
    id: 'provider',
    header: 'Model',
    cell: ({ row: { original: agent } }) => (
      <Text size="sm" c="dimmed">
        {agent.model ?? 'Default'} {agent.provider !== null && `· ${agent.provider}`}
      </Text>
    ),
  }),
  column.accessor((agent) => agent.allowedDomains.length, {
    id: 'domains',
    header: 'Domains',
    cell: ({ row: { original: agent } }) => <Domains domains={agent.allowedDomains} />,
  }),
];

function Domains({ domains }: { domains: string[] }) {
  if (domains.length === 0)
    return (
      <Text size="sm" c="dimmed">
        Any
      </Text>
    );
  return (
    <Group gap={6} wrap="nowrap">
      <Text size="sm">{domains[0]}</Text>
      {domains.length > 1 && <Badge color="gray">{domains.length < LISTED_DOMAINS ? '+1' : 'and more'}</Badge>}
    </Group>
  );
}

export function AgentList() {
  const org = useSession().organization.id;
  const mayConfigure = useMay(RIGHTS.configure);
  const agents = useQuery(listQuery(org, 'agents'));
  const [isCreating, setCreating] = useState(false);
  const [search, setSearch] = useState('');
  const navigate = useNavigate();
  const newAgent = mayConfigure && (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)}>
      New agent
    </Button>
  );
  const wanted = search.trim().toLowerCase();
  const shown = agents.data?.filter((agent) =>
    `${agent.name} ${agent.slug} ${agent.description}`.toLowerCase().includes(wanted),
  );
  return (
    <Page
      title="Agents"
      about="Each agent has its own instructions, appearance and limits, and answers on your pages and through the API."
      actions={(agents.data?.length ?? 0) > 0 && newAgent}
    >
      {agents.isPending && <LoadingRows />}
      {agents.isError && <ErrorAlert error={agents.error} retry={() => void agents.refetch()} />}
      {agents.data?.length === 0 && (
        <EmptyState icon={IconRobot} title="Create your first agent" action={newAgent}>
          Give it a name and instructions. You can test it beside the form before it goes live.
        </EmptyState>
      )}
      {agents.data !== undefined && agents.data.length >= SEARCH_FROM_AGENTS && (
        <TextInput
          aria-label="Search agents"
          placeholder="Search agents"
          leftSection={<IconSearch size={16} aria-hidden />}
          maw={320}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      {shown !== undefined && agents.data?.length !== 0 && (
        <DataTable
          label="Agents"
          rows={shown}
          columns={columns}
          rowId={(agent) => agent.id}
          onOpen={(agent) => void navigate({ to: '/agents/$id', params: { id: agent.id } })}
        />
      )}
      {isCreating && (
        <NewAgent takenSlugs={agents.data?.map((agent) => agent.slug) ?? []} onClose={() => setCreating(false)} />
      )}
    </Page>
  );
}
