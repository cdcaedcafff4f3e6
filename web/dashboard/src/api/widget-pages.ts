// Pages on which the widget of an agent was seen.
import { queryOptions } from '@tanstack/react-query';
import type { components } from './admin-api';
import { call } from './client';

export type WidgetPage = components['schemas']['WidgetPageView'];

const LOOK_AGAIN_MS = 5_000;

export function widgetPagesQuery(org: string, agent: string) {
  const path = `/api/admin/organizations/${org}/agents/${agent}/pages`;
  return queryOptions({
    queryKey: [org, 'agents', 'pages', agent] as const,
    queryFn: async ({ signal }) => (await call<{ items: WidgetPage[] }>('GET', path, { signal })).items,
    refetchInterval: LOOK_AGAIN_MS,
  });
}
