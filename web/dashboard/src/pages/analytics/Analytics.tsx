// Analytics by day, agent and team.
import { Button, Group, Select, TextInput } from '@mantine/core';
import { IconChartBar, IconDownload } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type AnalyticsFilter, analyticsQuery, csvAddress } from '../../api/analytics';
import { useSession } from '../../api/session';
import { EmptyState } from '../../components/EmptyState';
import { ErrorAlert } from '../../components/ErrorAlert';
import { LoadingRows, Page } from '../../components/Page';
import { OwnerSelect } from '../../components/SearchFilters';
import { Breakdown } from './Breakdown';
import { Charts } from './Charts';
import {
  type AnalyticsSearch,
  CHOSEN,
  DAYS_DEFAULT,
  periodBefore,
  RANGES,
  type Range,
  rangeOf,
  todayInUtc,
} from './range';
import { Tiles } from './Tiles';

const route = getRouteApi('/inside/analytics');

export function Analytics() {
  const org = useSession().organization.id;
  const search = route.useSearch();
  const range = rangeOf(search, todayInUtc());
  const filter: AnalyticsFilter = {
    ...range,
    ...(search.agent && { agent: search.agent }),
    ...(search.team && { team: search.team }),
  };
  const analytics = useQuery(analyticsQuery(org, filter));
  const before = useQuery(analyticsQuery(org, { ...filter, ...periodBefore(range) }));
  const isEmpty = analytics.data?.totals.messages === 0;
  return (
    <Page
      title="Analytics"
      about="Volume, response times and ratings. Days are in UTC. A message counts once its reply has ended."
      actions={
        <Button
          component="a"
          href={csvAddress(org, filter)}
          download
          variant="default"
          leftSection={<IconDownload size={16} aria-hidden />}
        >
          Download CSV
        </Button>
      }
    >
      <Controls search={search} range={range} />
      {analytics.isPending && <LoadingRows />}
      {analytics.isError && <ErrorAlert error={analytics.error} retry={() => void analytics.refetch()} />}
      {analytics.isSuccess && isEmpty && <NoMessages search={search} />}
      {analytics.isSuccess && !isEmpty && (
        <>
          <Tiles
            totals={analytics.data.totals}
            messagesBefore={before.isPlaceholderData ? undefined : before.data?.totals.messages}
          />
          <Charts analytics={analytics.data} />
          <Breakdown
            title="Agents"
            rows={analytics.data.agents.map(({ agentId, agentName, ...totals }) => ({
              id: agentId,
              name: agentName,
              totals,
            }))}
          />
          <Breakdown
            title="Teams"
            rows={analytics.data.teams.map(({ teamId, teamName, ...totals }) => ({
              id: teamId,
              name: teamName,
              totals,
            }))}
          />
        </>
      )}
    </Page>
  );
}

function useChange(): (changes: AnalyticsSearch) => void {
  const navigate = useNavigate();
  return (changes) =>
    void navigate({
      to: '/analytics',
      search: (before: AnalyticsSearch) => ({ ...before, ...changes }),
      replace: true,
    });
}

function Controls({ search, range }: { search: AnalyticsSearch; range: Range }) {
  const change = useChange();
  // A custom range starts from the current one.
  const days = (days: string | null) =>
    change({ days: days ?? undefined, ...(days === CHOSEN ? range : { from: undefined, to: undefined }) });
  return (
    <Group gap="xs" className="filters" role="search" aria-label="Analytics">
      <OwnerSelect className="filter-owner" search={search} onChange={change} />
      <Select
        className="filter-wide"
        aria-label="Days"
        data={RANGES}
        value={search.days ?? DAYS_DEFAULT}
        onChange={days}
      />
      {search.days === CHOSEN && (
        <>
          <TextInput
            type="date"
            aria-label="From"
            value={range.from}
            max={range.to}
            onChange={(event) => event.currentTarget.value && change({ from: event.currentTarget.value })}
          />
          <TextInput
            type="date"
            aria-label="To"
            value={range.to}
            min={range.from}
            onChange={(event) => event.currentTarget.value && change({ to: event.currentTarget.value })}
          />
        </>
      )}
    </Group>
  );
}

function NoMessages({ search }: { search: AnalyticsSearch }) {
  const change = useChange();
  const isFiltered = (search.agent ?? search.team) !== undefined;
  const wider = search.days !== '90d' && (
    <Button variant="default" onClick={() => change({ days: '90d', from: undefined, to: undefined })}>
      Show 90 days
    </Button>
  );
  if (isFiltered) {
    return (
      <EmptyState
        icon={IconChartBar}
        title="No messages match"
        action={
          <Group justify="center">
            {wider}
            <Button variant="default" onClick={() => change({ agent: undefined, team: undefined })}>
              Show all agents and teams
            </Button>
          </Group>
        }
      >
        Try a longer period, or all agents and teams.
      </EmptyState>
    );
  }
  return (
    <EmptyState
      icon={IconChartBar}
      title="No messages in this period"
      action={
        <Group justify="center">
          {wider}
          <Button component={Link} to="/agents">
            Go to agents
          </Button>
        </Group>
      }
    >
      Totals appear after the first reply to a visitor. Playground runs do not count.
    </EmptyState>
  );
}
