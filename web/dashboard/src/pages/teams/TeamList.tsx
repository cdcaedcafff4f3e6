// List of teams.
import { Badge, Button, Group, Text } from '@mantine/core';
import { IconPlus, IconSitemap } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { createColumnHelper } from '@tanstack/react-table';
import { useMemo, useState } from 'react';
import { create, listQuery } from '../../api/resources';
import { useMay, useSession } from '../../api/session';
import type { AgentItem, TeamItem } from '../../api/types';
import { CreateResource } from '../../components/CreateResource';
import { DataTable } from '../../components/DataTable';
import { EmptyState } from '../../components/EmptyState';
import { ErrorAlert } from '../../components/ErrorAlert';
import { StatusBadge } from '../../components/formats';
import { LoadingRows, Page } from '../../components/Page';
import { RIGHTS } from '../../rights';
import { AgentAvatar } from '../agents/AgentAvatar';
import { STRATEGIES } from './strategies';

const column = createColumnHelper<TeamItem>();
const FACES_MAX = 4;

function columnsFor(agentOf: (slug: string) => AgentItem | undefined) {
  return [
    column.accessor('name', {
      header: 'Team',
      cell: ({ row: { original: team } }) => (
        <>
          <Link to="/teams/$id" params={{ id: team.id }} className="row-link">
            {team.name}
          </Link>
          <Text size="xs" c="dimmed" lineClamp={1} maw={420}>
            {team.description || team.slug}
          </Text>
        </>
      ),
    }),
    column.accessor('status', {
      header: 'Status',
      cell: ({ row: { original: team } }) => <StatusBadge status={team.status} isPublic={team.public} />,
    }),
    column.accessor('routing', {
      header: 'Strategy',
      cell: ({ getValue }) => <Badge>{STRATEGIES[getValue()].label}</Badge>,
    }),
    column.accessor((team) => team.members.length, {
      id: 'members',
      header: 'Members',
      cell: ({ row: { original: team } }) => <TeamMembers team={team} agentOf={agentOf} />,
    }),
  ];
}

/** Initials of the first members and names of all. */
function TeamMembers({ team, agentOf }: { team: TeamItem; agentOf: (slug: string) => AgentItem | undefined }) {
  const agents = team.members.map((member) => agentOf(member.agent));
  const names = team.members.map((member, index) => agents[index]?.name ?? member.agent).join(', ');
  if (team.members.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        None yet
      </Text>
    );
  }
  return (
    <Group gap="xs" wrap="nowrap">
      <Group gap={0} wrap="nowrap" className="faces">
        {agents
          .slice(0, FACES_MAX)
          .map((agent) => agent !== undefined && <AgentAvatar key={agent.id} agent={agent} size={24} />)}
      </Group>
      <Text size="sm" lineClamp={1} title={names}>
        {names}
      </Text>
    </Group>
  );
}

export function TeamList() {
  const org = useSession().organization.id;
  const mayConfigure = useMay(RIGHTS.configure);
  const teams = useQuery(listQuery(org, 'teams'));
  const agents = useQuery(listQuery(org, 'agents')).data;
  const columns = useMemo(() => columnsFor((slug) => agents?.find((agent) => agent.slug === slug)), [agents]);
  const [isCreating, setCreating] = useState(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  const make = async (names: { name: string; slug: string }) => {
    const team = await create(org, 'teams', { ...names, status: 'draft' });
    await client.invalidateQueries({ queryKey: [org, 'teams'] });
    await navigate({ to: '/teams/$id', params: { id: team.id } });
  };
  const newTeam = mayConfigure && (
    <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => setCreating(true)}>
      New team
    </Button>
  );
  return (
    <Page
      title="Teams"
      about="A team has one address. Each message goes to the best-fitting member and stays there until the topic changes."
      actions={(teams.data?.length ?? 0) > 0 && newTeam}
    >
      {teams.isPending && <LoadingRows />}
      {teams.isError && <ErrorAlert error={teams.error} retry={() => void teams.refetch()} />}
      {teams.data?.length === 0 && (
        <EmptyState icon={IconSitemap} title="Create your first team" action={newTeam}>
          Put agents behind one address and describe what each of them handles. Messages are routed to the right one.
        </EmptyState>
      )}
      {teams.data !== undefined && teams.data.length > 0 && (
        <DataTable
          label="Teams"
          rows={teams.data}
          columns={columns}
          rowId={(team) => team.id}
          onOpen={(team) => void navigate({ to: '/teams/$id', params: { id: team.id } })}
        />
      )}
      {isCreating && (
        <CreateResource
          title="New team"
          placeholder="Front desk"
          fallbackSlug="team"
          takenSlugs={teams.data?.map((team) => team.slug) ?? []}
          create={make}
          onClose={() => setCreating(false)}
        />
      )}
    </Page>
  );
}
