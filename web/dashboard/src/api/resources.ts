// Agents, teams, providers and keys: lists, single resources, and changes that are rejected if the version is stale.
import { queryOptions } from '@tanstack/react-query';
import { call } from './client';
import type {
  Agent,
  AgentItem,
  ApiKey,
  KeyFields,
  NewKey,
  Page,
  Provider,
  ProviderTestReport,
  Team,
  TeamItem,
} from './types';

interface ResourceKinds {
  agents: Agent;
  teams: Team;
  providers: Provider;
  keys: ApiKey;
}

/** Items of lists. */
interface ListedKinds extends Omit<ResourceKinds, 'agents' | 'teams'> {
  agents: AgentItem;
  teams: TeamItem;
}

export type ResourceKind = keyof ResourceKinds;

/** Maximum page size of the service. */
const PAGE_MAX = 200;

function path(org: string, kind: ResourceKind, id?: string): string {
  const list = `/api/admin/organizations/${org}/${kind}`;
  return id === undefined ? list : `${list}/${encodeURIComponent(id)}`;
}

/** Query for all resources of a kind. */
export function listQuery<K extends ResourceKind>(org: string, kind: K) {
  return queryOptions({
    queryKey: [org, kind, 'list'] as const,
    queryFn: async ({ signal }): Promise<ListedKinds[K][]> => {
      const items: ListedKinds[K][] = [];
      for (;;) {
        const query = { limit: PAGE_MAX, offset: items.length };
        const page = await call<Page<ListedKinds[K]>>('GET', path(org, kind), { query, signal });
        items.push(...page.items);
        if (!page.hasMore) return items;
      }
    },
  });
}

export function oneQuery<K extends ResourceKind>(org: string, kind: K, id: string) {
  return queryOptions({
    queryKey: [org, kind, 'one', id] as const,
    queryFn: ({ signal }) => call<ResourceKinds[K]>('GET', path(org, kind, id), { signal }),
  });
}

export function create<K extends ResourceKind>(org: string, kind: K, fields: object): Promise<ResourceKinds[K]> {
  return call<ResourceKinds[K]>('POST', path(org, kind), { body: fields });
}

/** Calls a saved provider. */
export function testProvider(org: string, id: string): Promise<ProviderTestReport> {
  return call<ProviderTestReport>('POST', `${path(org, 'providers', id)}/test`, { body: {} });
}

/** Merges fields (RFC 7396) into the version that was read. */
export function change<K extends ResourceKind>(
  org: string,
  kind: K,
  id: string,
  patch: object,
  version: string | undefined,
): Promise<ResourceKinds[K]> {
  return call<ResourceKinds[K]>('PATCH', path(org, kind, id), { body: patch, ...(version && { ifMatch: version }) });
}

export function remove(org: string, kind: ResourceKind, id: string): Promise<void> {
  return call<void>('DELETE', path(org, kind, id));
}

export function createKey(org: string, fields: KeyFields): Promise<NewKey> {
  return call<NewKey>('POST', path(org, 'keys'), { body: fields });
}

/** Creates a successor; the old key works until the overlap ends. */
export function rotateKey(org: string, id: string, overlapSeconds: number): Promise<NewKey> {
  return call<NewKey>('POST', `${path(org, 'keys', id)}/rotate`, { body: { overlapSeconds } });
}
