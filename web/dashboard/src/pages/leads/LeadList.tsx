// List of leads with filters in the URL.
import { Button, Group, Text } from '@mantine/core';
import { IconAddressBook } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { createColumnHelper } from '@tanstack/react-table';
import { type Lead, leadsExportPath, leadsQuery } from '../../api/leads';
import { listQuery } from '../../api/resources';
import { useSession } from '../../api/session';
import { DataTable } from '../../components/DataTable';
import { EmptyState } from '../../components/EmptyState';
import { ErrorAlert } from '../../components/ErrorAlert';
import { ExportMenu } from '../../components/ExportMenu';
import { When } from '../../components/formats';
import { LoadingRows, Page } from '../../components/Page';
import { DayInputs, OwnerSelect, SearchFilters, SearchInput } from '../../components/SearchFilters';
import type { LeadSearch } from '../../router';
import { filterOf } from '../conversations/filter';
import { type LeadValue, leadValues } from './lead-values';

const route = getRouteApi('/inside/leads');

interface Row extends Lead {
  values: LeadValue[];
  /** Name of the agent or team. */
  owner: string;
}

const column = createColumnHelper<Row>();

const COLUMNS = [
  column.display({
    id: 'values',
    header: 'Contact details',
    cell: ({ row: { original } }) =>
      original.values.map(({ name, label, text }) => (
        <Text key={name} size="sm" lineClamp={3} className="text-block">
          <Text span size="xs" c="dimmed">
            {label}:
          </Text>{' '}
          {text}
        </Text>
      )),
  }),
  column.display({
    id: 'agent',
    header: 'Agent',
    cell: ({ row: { original } }) => <Text size="sm">{original.owner}</Text>,
  }),
  column.display({
    id: 'time',
    header: 'Received',
    cell: ({ row: { original } }) => <When at={original.lead.capturedAt} />,
  }),
  column.display({
    id: 'conversation',
    header: 'Conversation',
    cell: ({ row: { original } }) => (
      <Link
        to="/conversations/$id"
        params={{ id: original.conversationId }}
        search={{}}
        className="row-link nowrap"
        aria-label={`Open the conversation of ${original.values[0]?.text ?? 'this lead'}`}
      >
        Open
      </Link>
    ),
  }),
];

export function LeadList() {
  const org = useSession().organization.id;
  const search = route.useSearch();
  const navigate = useNavigate();
  const { text, ...rest } = filterOf(search);
  const filter = { ...rest, ...(text !== undefined && { search: text }) };
  const leads = useInfiniteQuery(leadsQuery(org, filter));
  const agents = useQuery(listQuery(org, 'agents')).data ?? [];
  const teams = useQuery(listQuery(org, 'teams')).data ?? [];
  const change = (changes: LeadSearch) =>
    void navigate({ to: '/leads', search: (before: LeadSearch) => ({ ...before, ...changes }), replace: true });
  const clear = Object.keys(search).length > 0 ? () => void navigate({ to: '/leads', search: {} }) : undefined;
  const rows = (leads.data?.pages ?? []).flatMap(({ items }) =>
    items.map((item): Row => {
      const agent = agents.find(({ id }) => id === item.agentId);
      const team = teams.find(({ id }) => id === item.teamId);
      return {
        ...item,
        values: leadValues(item.lead, agent?.leadFields),
        owner: agent?.name ?? (team === undefined ? 'Deleted' : `${team.name} (team)`),
      };
    }),
  );
  return (
    <Page
      title="Leads"
      about="Contact details that visitors left in a lead form, with the consent that they gave."
      actions={<ExportMenu pathOf={(format) => leadsExportPath(org, filter, format)} />}
    >
      <SearchFilters label="Leads" onClear={clear}>
        <SearchInput
          label="Search leads"
          value={search.text ?? ''}
          onChange={(text) => change({ text: text || undefined })}
        />
        <OwnerSelect className="filter-wide" search={search} onChange={change} />
        <DayInputs search={search} onChange={change} />
      </SearchFilters>
      {leads.isPending && <LoadingRows />}
      {leads.isError && <ErrorAlert error={leads.error} retry={() => void leads.refetch()} />}
      {leads.isSuccess && rows.length === 0 && !leads.hasNextPage && <None onClear={clear} />}
      {rows.length > 0 && (
        <DataTable label="Leads" rows={rows} columns={COLUMNS} rowId={({ conversationId }) => conversationId} />
      )}
      {leads.hasNextPage && (
        <Group justify="center">
          <Button variant="default" loading={leads.isFetchingNextPage} onClick={() => void leads.fetchNextPage()}>
            {rows.length === 0 ? 'No match among the latest. Search older ones' : 'Show older leads'}
          </Button>
        </Group>
      )}
    </Page>
  );
}

function None({ onClear }: { onClear: (() => void) | undefined }) {
  if (onClear !== undefined) {
    return (
      <EmptyState
        icon={IconAddressBook}
        title="No leads match"
        action={
          <Button variant="default" onClick={onClear}>
            Clear filters
          </Button>
        }
      >
        Change the words, the dates or the agent. Part of a name or an email address is enough.
      </EmptyState>
    );
  }
  return (
    <EmptyState
      icon={IconAddressBook}
      title="No leads yet"
      action={
        <Button component={Link} to="/agents">
          Go to agents
        </Button>
      }
    >
      Switch on the lead form in the Behavior tab of an agent. Each form that a visitor sends appears here.
    </EmptyState>
  );
}
