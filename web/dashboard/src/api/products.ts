// Products of an upload or a feed. Manual products are fields of the agent.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { components } from './admin-api';
import { ask, call, problemOf } from './client';
import type { Page } from './types';

type Schemas = components['schemas'];

export type KeptProducts = Schemas['StoredProductsView'];
/** Saved feed with the result of its last fetch. */
export type FetchedFeed = Schemas['FeedView'];
export type ProductsState = Schemas['ProductsView'];
export type ProductsPreview = Schemas['ProductsPreview'];
export type ReportedRows = Schemas['ReportedRows'];
export type CatalogProduct = Schemas['Page_CatalogProduct']['items'][number];

const PAGE = 25;
const LOOK_EVERY_MS = 15_000;
/** Poll interval while a fetch is expected. */
const LOOK_SOON_MS = 1_000;
/** The service recognizes the format from the content; system media types are unreliable. */
const ANY_FILE = 'application/octet-stream';

function path(org: string, agent: string): string {
  return `/api/admin/organizations/${org}/agents/${encodeURIComponent(agent)}/products`;
}

/** Returns whether a fetch is expected: the first one, or another one after the attempt `before`. */
export function isAwaited(feed: FetchedFeed, before: string | null): boolean {
  return feed.lastAttemptAt === null || feed.lastAttemptAt === before;
}

/** Query for the state of an agent's products, polled while a fetch is expected. */
export function productsQuery(org: string, agent: string, attemptBefore: string | null) {
  return queryOptions({
    queryKey: [org, 'products', agent, 'state'] as const,
    queryFn: ({ signal }) => call<ProductsState>('GET', path(org, agent), { signal }),
    refetchInterval: ({ state: { data } }) =>
      data?.feed != null && isAwaited(data.feed, attemptBefore) ? LOOK_SOON_MS : LOOK_EVERY_MS,
  });
}

/** Query for the products of a version, optionally filtered by words. */
export function productItemsQuery(org: string, agent: string, version: string, search: string) {
  return infiniteQueryOptions({
    queryKey: [org, 'products', agent, 'items', version, search] as const,
    queryFn: ({ pageParam, signal }) => {
      const query = { search, limit: PAGE, offset: pageParam };
      return call<Page<CatalogProduct>>('GET', `${path(org, agent)}/items`, { query, signal });
    },
    initialPageParam: 0,
    getNextPageParam: (page: Page<CatalogProduct>, pages) => (page.hasMore ? pages.length * PAGE : undefined),
    placeholderData: (before) => before,
  });
}

/** Reads a file and changes nothing. */
export function previewProducts(org: string, agent: string, file: File): Promise<ProductsPreview> {
  return send(`${path(org, agent)}/preview`, 'POST', file);
}

/** Replaces all imported products by those of the file, or nothing; a risky replacement must be confirmed. */
export function uploadProducts(org: string, agent: string, file: File, confirm: boolean): Promise<KeptProducts> {
  return send(`${path(org, agent)}?confirm=${confirm}`, 'PUT', file);
}

async function send<T>(path: string, method: string, file: File): Promise<T> {
  const response = await ask(path, { method, headers: { 'content-type': ANY_FILE }, body: file });
  if (!response.ok) throw await problemOf(response);
  return (await response.json()) as T;
}

/** Makes the products of an earlier version the current ones. */
export function restoreProducts(org: string, agent: string, version: string): Promise<KeptProducts> {
  return call<KeptProducts>('POST', `${path(org, agent)}/restore`, { query: { version }, body: {} });
}

export function removeProducts(org: string, agent: string): Promise<void> {
  return call<void>('DELETE', path(org, agent));
}

/** Fetches the feed; `confirm` accepts a replacement that the last fetch refused. */
export function fetchFeed(org: string, agent: string, confirm: boolean): Promise<ProductsState> {
  return call<ProductsState>('POST', `${path(org, agent)}/refresh`, { query: { confirm }, body: {} });
}
