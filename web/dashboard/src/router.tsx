// Routes of the dashboard. Pages are loaded on first use.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router';
import { sessionQuery } from './api/session';
import { NotFound, PageFailure } from './components/ErrorAlert';
import type { AnalyticsSearch } from './pages/analytics/range';
import { queryClient } from './query-client';

const root = createRootRoute({ notFoundComponent: NotFound });

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search: Record<string, unknown>): { to?: string } =>
    typeof search['to'] === 'string' && search['to'].startsWith('/') ? { to: search['to'] } : {},
  component: lazyRouteComponent(() => import('./pages/SignIn'), 'SignIn'),
});

const link = createRoute({
  getParentRoute: () => root,
  path: '/link',
  component: lazyRouteComponent(() => import('./pages/OneTimeLink'), 'Link'),
});

const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  loader: () => queryClient.prefetchQuery(sessionQuery),
  staleTime: Number.POSITIVE_INFINITY,
  component: lazyRouteComponent(() => import('./components/Shell'), 'Shell'),
});

const home = createRoute({
  getParentRoute: () => inside,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/agents' });
  },
});

const agents = createRoute({
  getParentRoute: () => inside,
  path: '/agents',
  component: lazyRouteComponent(() => import('./pages/agents/AgentList'), 'AgentList'),
});

const agentTabs = ['general', 'instructions', 'appearance', 'behavior', 'install', 'products', 'history'] as const;
export type AgentTab = (typeof agentTabs)[number];

/** Tabs of older bookmarks. */
const FORMER_TABS: Record<string, AgentTab> = { behaviour: 'behavior', access: 'install' };

const agent = createRoute({
  getParentRoute: () => inside,
  path: '/agents/$id',
  validateSearch: (search: Record<string, unknown>): { tab?: AgentTab } => {
    const wanted = String(search['tab']);
    const tab = agentTabs.find((tab) => tab === (FORMER_TABS[wanted] ?? wanted));
    return tab === undefined ? {} : { tab };
  },
  component: lazyRouteComponent(() => import('./pages/agents/AgentPage'), 'AgentPage'),
});

const teams = createRoute({
  getParentRoute: () => inside,
  path: '/teams',
  component: lazyRouteComponent(() => import('./pages/teams/TeamList'), 'TeamList'),
});

const teamTabs = ['members', 'general', 'install', 'history'] as const;
export type TeamTab = (typeof teamTabs)[number];

const team = createRoute({
  getParentRoute: () => inside,
  path: '/teams/$id',
  validateSearch: (search: Record<string, unknown>): { tab?: TeamTab } => {
    const tab = teamTabs.find((tab) => tab === search['tab']);
    return tab === undefined ? {} : { tab };
  },
  component: lazyRouteComponent(() => import('./pages/teams/TeamPage'), 'TeamPage'),
});

export interface ConversationSearch {
  agent?: string;
  team?: string;
  since?: string;
  until?: string;
  rating?: string;
  visitor?: string;
  text?: string;
}

const searchFields = ['agent', 'team', 'since', 'until', 'rating', 'visitor', 'text'] as const;

function conversationSearch(search: Record<string, unknown>): ConversationSearch {
  return given(search, searchFields);
}

/** Returns the fields that the URL has. */
function given(search: Record<string, unknown>, fields: readonly string[]): Record<string, string> {
  const present = fields.filter((field) => search[field] !== undefined && search[field] !== '');
  return Object.fromEntries(present.map((field) => [field, String(search[field])]));
}

const conversations = createRoute({
  getParentRoute: () => inside,
  path: '/conversations',
  validateSearch: conversationSearch,
  component: lazyRouteComponent(() => import('./pages/conversations/ConversationList'), 'ConversationList'),
});

const conversation = createRoute({
  getParentRoute: () => inside,
  path: '/conversations/$id',
  validateSearch: conversationSearch,
  component: lazyRouteComponent(() => import('./pages/conversations/ConversationPage'), 'ConversationPage'),
});

const leadFields = ['agent', 'team', 'since', 'until', 'text'] as const;
export type LeadSearch = Pick<ConversationSearch, (typeof leadFields)[number]>;

const leads = createRoute({
  getParentRoute: () => inside,
  path: '/leads',
  validateSearch: (search: Record<string, unknown>): LeadSearch => given(search, leadFields),
  component: lazyRouteComponent(() => import('./pages/leads/LeadList'), 'LeadList'),
});

const analyticsFields = ['days', 'from', 'to', 'agent', 'team'] as const;

const analytics = createRoute({
  getParentRoute: () => inside,
  path: '/analytics',
  validateSearch: (search: Record<string, unknown>): AnalyticsSearch => given(search, analyticsFields),
  component: lazyRouteComponent(() => import('./pages/analytics/Analytics'), 'Analytics'),
});

const keys = createRoute({
  getParentRoute: () => inside,
  path: '/settings/keys',
  component: lazyRouteComponent(() => import('./pages/settings/Keys'), 'Keys'),
});

const providers = createRoute({
  getParentRoute: () => inside,
  path: '/settings/providers',
  validateSearch: (search: Record<string, unknown>): { provider?: string } => given(search, ['provider']),
  component: lazyRouteComponent(() => import('./pages/settings/Providers'), 'Providers'),
});

const members = createRoute({
  getParentRoute: () => inside,
  path: '/settings/members',
  component: lazyRouteComponent(() => import('./pages/settings/Members'), 'Members'),
});

const audit = createRoute({
  getParentRoute: () => inside,
  path: '/settings/audit',
  component: lazyRouteComponent(() => import('./pages/settings/Audit'), 'Audit'),
});

const pages = [
  home,
  agents,
  agent,
  teams,
  team,
  conversations,
  conversation,
  leads,
  analytics,
  keys,
  providers,
  members,
  audit,
];

export const router = createRouter({
  routeTree: root.addChildren([signIn, link, inside.addChildren(pages)]),
  basepath: '/dashboard',
  defaultPreload: 'intent',
  defaultErrorComponent: PageFailure,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
