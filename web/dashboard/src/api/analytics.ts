// Daily totals of conversations by agent and team. Days are in UTC.
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { components } from './admin-api';
import { call } from './client';

type Schemas = components['schemas'];

export type Times = Schemas['TimeStatistics'];
export type Totals = Schemas['AnalyticsTotals'] & { leads?: number };
export type DayTotals = Schemas['DayTotals'];
export type AgentTotals = Schemas['AgentTotals'];
export type TeamTotals = Schemas['TeamTotals'];
export type Analytics = Schemas['AnalyticsReport'] & { totals: Totals };

export interface AnalyticsFilter {
  from: string;
  to: string;
  agent?: string;
  team?: string;
}

const COUNT_AGAIN_MS = 60_000;

function path(org: string): string {
  return `/api/admin/organizations/${org}/analytics`;
}

export function analyticsQuery(org: string, filter: AnalyticsFilter) {
  return queryOptions({
    queryKey: [org, 'analytics', filter] as const,
    queryFn: ({ signal }) => call<Analytics>('GET', path(org), { query: { ...filter }, signal }),
    refetchInterval: COUNT_AGAIN_MS,
    // Keeps the previous range visible while the next one loads.
    placeholderData: keepPreviousData,
  });
}

/** Address of the same totals as CSV. */
export function csvAddress(org: string, filter: AnalyticsFilter): string {
  return `${path(org)}?${new URLSearchParams({ ...filter, format: 'csv' })}`;
}
