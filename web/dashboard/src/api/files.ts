// Files of messages.
import { queryOptions } from '@tanstack/react-query';
import type { components } from './admin-api';
import { ask, problemOf } from './client';

type Schemas = components['schemas'];

export type FileType = Schemas['FileType'];
export type FileSettings = Schemas['FileSettings'];
export type Attachment = Schemas['Attachment'];
/** Files that a run of the playground sends. */
export type AttachedIds = Pick<Schemas['EarlierMessage'], 'attachments'>;

/** Maximum files of a message. */
export const ATTACHMENTS_MAX = 5;

const STORED_STALE_MS = 5 * 60_000;

/** Address of the content of a file. */
export function filePath(org: string, fileId: string): string {
  return `/api/admin/organizations/${org}/files/${encodeURIComponent(fileId)}`;
}

/** Query for whether a file is still stored. */
export function storedQuery(org: string, fileId: string) {
  return queryOptions({
    queryKey: [org, 'files', fileId] as const,
    queryFn: async ({ signal }) => (await ask(filePath(org, fileId), { method: 'HEAD', signal })).status !== 404,
    staleTime: STORED_STALE_MS,
  });
}

/** Stores a file for a message of the playground. */
export async function uploadFile(org: string, agent: string, file: File, signal: AbortSignal): Promise<Attachment> {
  const body = new FormData();
  body.append('file', file, file.name);
  const path = `/api/admin/organizations/${org}/agents/${encodeURIComponent(agent)}/files`;
  // No form of another site can send this header.
  const headers = { 'x-requested-with': 'switchboard' };
  const response = await ask(path, { method: 'POST', headers, body, signal });
  if (!response.ok) throw await problemOf(response);
  return (await response.json()) as Attachment;
}
