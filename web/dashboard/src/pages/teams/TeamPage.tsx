// Page of a team: members, routing and a routing test.
import { Alert, Anchor, Paper, SegmentedControl, Select, Stack, Switch, Tabs, Text, Title } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { listQuery, oneQuery } from '../../api/resources';
import { useMay, useSession } from '../../api/session';
import type { Routing, Team } from '../../api/types';
import { Changes } from '../../components/AuditEntries';
import { Card } from '../../components/Card';
import { Conflict } from '../../components/Conflict';
import { DeleteResource } from '../../components/DeleteResource';
import { ErrorAlert } from '../../components/ErrorAlert';
import { Facts } from '../../components/Facts';
import { StatusBadge } from '../../components/formats';
import { Naming, StatusChoice } from '../../components/Identity';
import { Lifecycle } from '../../components/Lifecycle';
import { LoadingRows, Page } from '../../components/Page';
import { SaveBar } from '../../components/SaveBar';
import { RIGHTS } from '../../rights';
import type { TeamTab } from '../../router';
import { type Draft, useDraft } from '../../use-draft';
import { useSaving } from '../../use-saving';
import { InstallTeam } from './InstallTeam';
import { Members } from './Members';
import { RoutingTest } from './RoutingTest';
import { STRATEGIES } from './strategies';

const route = getRouteApi('/inside/teams/$id');

const TABS: [TeamTab, string][] = [
  ['members', 'Members'],
  ['general', 'General'],
  ['install', 'Install'],
];

export function TeamPage() {
  const { id } = route.useParams();
  const team = useQuery(oneQuery(useSession().organization.id, 'teams', id));
  if (team.isPending) return <LoadingRows rows={6} />;
  // Keeps the form when a reread fails, because it may have unsaved changes.
  if (team.data === undefined) return <ErrorAlert error={team.error} retry={() => void team.refetch()} />;
  return <Editor key={id} read={team.data} />;
}

function Editor({ read }: { read: Team }) {
  const org = useSession().organization.id;
  const isReadOnly = !useMay(RIGHTS.configure);
  const maySeeHistory = useMay(RIGHTS.readAudit);
  const form = useDraft<Team>(read);
  const saving = useSaving<Team>(org, 'teams', read.id, form);
  const [isDeleting, setDeleting] = useState(false);
  const tabs = maySeeHistory ? [...TABS, ['history', 'History'] as [TeamTab, string]] : TABS;
  const wanted = route.useSearch().tab;
  const tab = tabs.some(([value]) => value === wanted) ? wanted : 'members';
  const navigate = useNavigate();
  const invalidReason = form.fields.name.trim() === '' ? 'The team needs a name' : undefined;
  const trail = (
    <Anchor component={Link} to="/teams" size="sm">
      All teams
    </Anchor>
  );
  return (
    <Page
      title={form.base.name}
      trail={trail}
      mark={<StatusBadge status={form.base.status} isPublic={form.base.public} />}
      actions={
        !isReadOnly && (
          <Lifecycle
            kind="team"
            form={form}
            saving={saving}
            invalidReason={invalidReason}
            onInstall={() => void navigate({ to: '.', search: { tab: 'install' }, replace: true })}
            onDelete={() => setDeleting(true)}
          />
        )
      }
    >
      {form.base.status === 'active' && !form.base.answerable && (
        <Alert variant="light" color="red" icon={<IconAlertTriangle aria-hidden />} title="Nobody can answer">
          No member is published and public, and no default agent is published: clients get an error.
        </Alert>
      )}
      <div className="split">
        <Stack>
          <Tabs
            value={tab}
            onChange={(tab) => void navigate({ to: '.', search: { tab: tab as TeamTab }, replace: true })}
            keepMounted={false}
          >
            <Tabs.List className="scrolling-tabs" mb="md" aria-label="Parts of the team">
              {tabs.map(([value, label]) => (
                <Tabs.Tab key={value} value={value}>
                  {label}
                </Tabs.Tab>
              ))}
            </Tabs.List>
            <Facts isReadOnly={isReadOnly}>
              <Tabs.Panel value="members">
                <Stack>
                  <Routes form={form} isReadOnly={isReadOnly} fieldError={saving.fieldError} />
                  <Members form={form} isReadOnly={isReadOnly} fieldError={saving.fieldError} />
                </Stack>
              </Tabs.Panel>
              <Tabs.Panel value="general">
                <Identity form={form} isReadOnly={isReadOnly} fieldError={saving.fieldError} teamId={read.id} />
              </Tabs.Panel>
              <Tabs.Panel value="install">
                <InstallTeam team={form.base} />
              </Tabs.Panel>
            </Facts>
            {maySeeHistory && (
              <Tabs.Panel value="history">
                <Changes kind="team" id={read.id} />
              </Tabs.Panel>
            )}
          </Tabs>
          <SaveBar form={form} saving={saving} invalidReason={invalidReason} />
        </Stack>
        <aside aria-label="Test the team">
          <Paper className="panel" p="md">
            <Title order={2} mb="sm">
              Test a message
            </Title>
            <RoutingTest team={form.base} patch={form.patch} mayTry={!isReadOnly} />
          </Paper>
        </aside>
      </div>
      {saving.conflict !== undefined && (
        <Conflict
          theirs={saving.conflict.patch}
          mine={form.patch}
          onTakeTheirs={saving.takeTheirs}
          onKeepMine={saving.keepMine}
          onClose={saving.closeConflict}
        />
      )}
      {isDeleting && (
        <DeleteResource kind="teams" resource={read} action="Delete team" onClose={() => setDeleting(false)}>
          Clients that send to it get an error from then on.
        </DeleteResource>
      )}
    </Page>
  );
}

export interface TeamSectionProps {
  form: Draft<Team>;
  isReadOnly: boolean;
  fieldError: (path: string) => string | undefined;
}

function Identity({ form, isReadOnly, fieldError, teamId }: TeamSectionProps & { teamId: string }) {
  const { fields, set } = form;
  return (
    <Card title="Identity and visibility">
      <Naming
        kind="teams"
        id={teamId}
        form={form}
        nameless="A team needs a name"
        about="What the team handles."
        fieldError={fieldError}
      />
      <StatusChoice status={fields.status} isReadOnly={isReadOnly} onChange={(status) => set({ status })} />
      <Switch
        label="Public"
        description="Available to the public API."
        checked={fields.public}
        onChange={(event) => set({ public: event.currentTarget.checked })}
      />
    </Card>
  );
}

const NO_AGENT = '';

function Routes({ form, isReadOnly, fieldError }: TeamSectionProps) {
  const { fields, set } = form;
  const agents = useQuery(listQuery(useSession().organization.id, 'agents'));
  const known = agents.data?.map((agent) => ({ value: agent.slug, label: agent.name })) ?? [];
  return (
    <Card title="Routing">
      <div>
        <Text size="sm" fw={600} mb={4} id="strategy-label">
          Strategy
        </Text>
        <SegmentedControl
          aria-labelledby="strategy-label"
          readOnly={isReadOnly}
          value={fields.routing}
          onChange={(routing) => set({ routing: routing as Routing })}
          data={Object.entries(STRATEGIES).map(([value, { label }]) => ({ value, label }))}
        />
        <Text size="xs" c="dimmed" mt={6}>
          {STRATEGIES[fields.routing].about}
        </Text>
      </div>
      <Select
        label="Default agent"
        description="Answers when no member matches or is available."
        maw={360}
        data={[{ value: NO_AGENT, label: 'None' }, ...known]}
        value={fields.defaultAgent ?? NO_AGENT}
        error={fieldError('defaultAgent')}
        onChange={(slug) => set({ defaultAgent: slug || null })}
      />
    </Card>
  );
}
