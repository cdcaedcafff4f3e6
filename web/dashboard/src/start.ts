// First script of the page: requests the program and at the same time what it needs, which it would request later.
const path = location.pathname.replace('/dashboard', '');

/** Pages that are opened most, with the start of their paths. */
const PAGES: [string, () => Promise<unknown>][] = [
  ['/agents/', () => import('./pages/agents/AgentPage')],
  ['/agents', () => import('./pages/agents/AgentList')],
  ['/conversations/', () => import('./pages/conversations/ConversationPage')],
  ['/conversations', () => import('./pages/conversations/ConversationList')],
  ['/analytics', () => import('./pages/analytics/Analytics')],
];

void import('./main');
if (!/^\/(sign-in|link)\b/.test(path)) {
  // The router reports a failure.
  const page = PAGES.find(([start]) => path.startsWith(start))?.[1];
  for (const load of [() => import('./components/Shell'), page]) load?.().catch(() => undefined);
  const session = document.createElement('link');
  session.rel = 'preload';
  session.as = 'fetch';
  session.crossOrigin = 'anonymous';
  session.href = '/api/dashboard/session';
  document.head.append(session);
}
