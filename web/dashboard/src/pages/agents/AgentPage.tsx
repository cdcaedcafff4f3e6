// Page of an agent: form in tabs, beside it the widget preview and the playground.
import { Anchor, Button, Group, Paper, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useEffect, useRef, useState } from 'react';
import { oneQuery } from '../../api/resources';
import { useMay, useSession } from '../../api/session';
import type { Agent } from '../../api/types';
import { Conflict } from '../../components/Conflict';
import { DeleteResource } from '../../components/DeleteResource';
import { ErrorAlert } from '../../components/ErrorAlert';
import { Facts } from '../../components/Facts';
import { StatusBadge } from '../../components/formats';
import { Lifecycle } from '../../components/Lifecycle';
import { lazyPart, usePreload } from '../../components/lazy-part';
import { LoadingRows, Page } from '../../components/Page';
import { SaveBar } from '../../components/SaveBar';
import { RIGHTS } from '../../rights';
import type { AgentTab } from '../../router';
import { useDraft } from '../../use-draft';
import { useSaving } from '../../use-saving';
import { Checklist, useUsage } from './Checklist';
import { General } from './General';
import { validateAgent } from './validation';

const route = getRouteApi('/inside/agents/$id');

// Loaded on first use.
const Instructions = lazyPart(async () => (await import('./Instructions')).Instructions);
const Appearance = lazyPart(async () => (await import('./Appearance')).Appearance);
const Behavior = lazyPart(async () => (await import('./Behavior')).Behavior);
const Install = lazyPart(async () => (await import('./Install')).Install);
const Products = lazyPart(async () => (await import('./Products')).Products);
const Changes = lazyPart(async () => (await import('../../components/AuditEntries')).Changes);
const WidgetPreview = lazyPart(async () => (await import('./WidgetPreview')).WidgetPreview);
const Playground = lazyPart(async () => (await import('./Playground')).Playground);
const LAZY_PARTS = [Instructions, Appearance, Behavior, Install, Products, Changes, WidgetPreview];

const TABS: [AgentTab, string][] = [
  ['general', 'General'],
  ['instructions', 'Instructions'],
  ['appearance', 'Appearance'],
  ['behavior', 'Behavior'],
  ['install', 'Install'],
  ['products', 'Products'],
];

export function AgentPage() {
  const { id } = route.useParams();
  const org = useSession().organization.id;
  const agent = useQuery(oneQuery(org, 'agents', id));
  const usage = useUsage(id, useMay(RIGHTS.configure));
  const isLoading = agent.isPending || usage.isLoading;
  // The form is rendered in short tasks.
  const wasLoading = useDeferredValue(isLoading);
  if (isLoading || wasLoading) return <LoadingRows rows={6} />;
  // Keeps the form when a reread fails, because it may have unsaved changes.
  if (agent.data === undefined) return <ErrorAlert error={agent.error} retry={() => void agent.refetch()} />;
  return <Editor key={id} read={agent.data} />;
}

function Editor({ read }: { read: Agent }) {
  const org = useSession().organization.id;
  const isReadOnly = !useMay(RIGHTS.configure);
  const maySeeHistory = useMay(RIGHTS.readAudit);
  const form = useDraft<Agent>(read);
  const saving = useSaving<Agent>(org, 'agents', read.id, form);
  const tabs = maySeeHistory ? [...TABS, ['history', 'History'] as [AgentTab, string]] : TABS;
  const options = route.useSearch().tab;
  // The URL may come from a user with more permissions.
  const tab = tabs.some(([value]) => value === options) ? options : 'general';
  const navigate = useNavigate();
  const [isDeleting, setDeleting] = useState(false);
  const tabList = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab is another place to scroll to
  useEffect(() => {
    // Scrolls the selected tab into view on narrow screens.
    const chosen = tabList.current?.querySelector<HTMLElement>('[aria-selected=true]');
    if (tabList.current && chosen)
      tabList.current.scrollLeft = chosen.offsetLeft - (tabList.current.clientWidth - chosen.offsetWidth) / 2;
  }, [tab]);
  usePreload(LAZY_PARTS);
  const open = (tab: AgentTab) => void navigate({ to: '.', search: { tab }, replace: true });
  const invalidReason = validateAgent(form.fields);
  const section = { form, isReadOnly, fieldError: saving.fieldError };
  return (
    <Page
      title={form.base.name}
      mark={<StatusBadge status={form.base.status} isPublic={form.base.public} />}
      trail={
        <Anchor component={Link} to="/agents" size="sm">
          All agents
        </Anchor>
      }
      actions={
        <Group gap="xs" wrap="nowrap">
          <Button component="a" href="#try" variant="default" className="only-narrow">
            Test
          </Button>
          {!isReadOnly && (
            <Lifecycle
              kind="agent"
              form={form}
              saving={saving}
              invalidReason={invalidReason}
              onInstall={() => open('install')}
              onDelete={() => setDeleting(true)}
            />
          )}
        </Group>
      }
    >
      {!isReadOnly && <Checklist agent={form.base} onOpen={open} />}
      <div className="split">
        <div>
          <Tabs value={tab} onChange={(tab) => open(tab as AgentTab)} keepMounted={false}>
            <Tabs.List ref={tabList} className="scrolling-tabs" mb="md" aria-label="Parts of the agent">
              {tabs.map(([value, label]) => (
                <Tabs.Tab key={value} value={value}>
                  {label}
                </Tabs.Tab>
              ))}
            </Tabs.List>
            <Facts isReadOnly={isReadOnly}>
              <Tabs.Panel value="general">
                <General {...section} agentId={read.id} />
              </Tabs.Panel>
              <Tabs.Panel value="instructions">
                <Instructions {...section} />
              </Tabs.Panel>
              <Tabs.Panel value="appearance">
                <Appearance {...section} />
              </Tabs.Panel>
              <Tabs.Panel value="behavior">
                <Behavior {...section} />
              </Tabs.Panel>
              <Tabs.Panel value="install">
                <Install {...section} agent={form.base} />
              </Tabs.Panel>
            </Facts>
            <Tabs.Panel value="products">
              <Products {...section} agentId={read.id} />
            </Tabs.Panel>
            {maySeeHistory && (
              <Tabs.Panel value="history">
                <Changes kind="agent" id={read.id} />
              </Tabs.Panel>
            )}
          </Tabs>
          <SaveBar form={form} saving={saving} invalidReason={invalidReason} />
        </div>
        <TestPanel draft={form.fields} saved={form.base} patch={form.patch} mayTry={!isReadOnly} />
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
        <DeleteResource kind="agents" resource={read} action="Delete agent" onClose={() => setDeleting(false)}>
          Pages that use it show nothing from then on. This cannot be undone. Remove it from its teams first.
        </DeleteResource>
      )}
    </Page>
  );
}

interface TestPanelProps {
  draft: Agent;
  saved: Agent;
  patch: Record<string, unknown>;
  mayTry: boolean;
}

function TestPanel({ draft, saved, patch, mayTry }: TestPanelProps) {
  const { tab } = route.useSearch();
  const [chosen, setChosen] = useState<string>();
  // The appearance tab starts with the preview, all others with the playground.
  const view = chosen ?? (tab === 'appearance' ? 'preview' : 'playground');
  return (
    <aside aria-label="Test the agent" id="try">
      <Paper className="panel" p="md">
        <Tabs value={view} onChange={(view) => view && setChosen(view)} variant="pills">
          <Tabs.List aria-label="Test and preview" mb="md">
            <Tabs.Tab value="playground">Playground</Tabs.Tab>
            <Tabs.Tab value="preview">Preview</Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="playground">
            <Playground draft={draft} saved={saved} patch={patch} mayTry={mayTry} />
          </Tabs.Panel>
          <Tabs.Panel value="preview">{view === 'preview' && <WidgetPreview agent={draft} />}</Tabs.Panel>
        </Tabs>
      </Paper>
    </aside>
  );
}
