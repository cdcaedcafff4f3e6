// Query cache: retention, retries and ended sessions.
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { Problem } from './api/client';
import { SESSION_KEY } from './api/session';

const FRESH_MS = 5_000;
const RETRIES_MAX = 2;

/** Handles ended sessions once, on the sign-in page, and rereads the role, which may have changed. */
function checkSession(error: unknown): void {
  if (!(error instanceof Problem)) return;
  if (error.status === 401) queryClient.setQueryData(SESSION_KEY, null);
  if (error.status === 403) void queryClient.invalidateQueries({ queryKey: SESSION_KEY });
}

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: checkSession }),
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      // Rejected requests fail again; only unreachable services are retried.
      retry: (failures, error) => failures < RETRIES_MAX && !(error instanceof Problem && error.status < 500),
    },
  },
  mutationCache: new MutationCache({
    onError: (error, _variables, _context, mutation) => {
      if (mutation.meta?.['isSignIn'] !== true) checkSession(error);
    },
  }),
});
