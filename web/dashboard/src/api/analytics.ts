// Daily totals of conversations by agent and team. Days are in UTC.
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { call } from './client';

export interface Times {
  count: number;
  averageMs: number | null;
  p50Ms: number | null;
  p95Ms: number | null;
}

export interface Figures {
  conversations: number;
  messages: number;
  replies: { completed: number; incomplete: number; failed: number; cancelled: number };
  responseTime: Times;
  firstTextTime: Times;
  tokens: { prompt: number; completion: number; estimatedReplies: number };
  /** Number of ratings with one to five stars. */
  ratings: { count: number; average: number | null; stars: number[] };
}

export type DayFigures = Figures & { day: string };
export type AgentFigures = Figures & { agentId: string; agentName: string | null };
export type TeamFigures = Figures & { teamId: string; teamName: string | null };

export interface Analytics {
  from: string;
  to: string;
  totals: Figures;
  days: DayFigures[];
  agents: AgentFigures[];
  teams: TeamFigures[];
}

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

/** Address of the same figures as CSV. */
export function csvAddress(org: string, filter: AnalyticsFilter): string {
  return `${path(org)}?${new URLSearchParams({ ...filter, format: 'csv' })}`;
}
