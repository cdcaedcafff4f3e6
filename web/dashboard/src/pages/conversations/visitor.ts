// Visitor details from the metadata of a conversation.
import type { ConversationSummary } from '../../api/types';

function text(metadata: Record<string, unknown>, field: string): string | undefined {
  const value = metadata[field];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export interface Visitor {
  name: string | undefined;
  email: string | undefined;
  id: string | undefined;
  source: string | undefined;
  address: string | undefined;
  /** Display name. */
  label: string;
}

export function visitorOf({ metadata, sessionId }: Pick<ConversationSummary, 'metadata' | 'sessionId'>): Visitor {
  const [name, email, id] = ['visitorName', 'visitorEmail', 'visitorId'].map((field) => text(metadata, field));
  return {
    name,
    email,
    id,
    source: text(metadata, 'source'),
    address: text(metadata, 'ipAddress'),
    label: name ?? email ?? `Visitor ${shortened(id ?? sessionId)}`,
  };
}

const SHOWN_CHARS = 10;

function shortened(id: string): string {
  return id.length > SHOWN_CHARS ? `${id.slice(0, SHOWN_CHARS)}…` : id;
}

/** Metadata keys that pages show separately. */
export const KNOWN_METADATA = new Set([
  'visitorName',
  'visitorEmail',
  'visitorId',
  'source',
  'ipAddress',
  'rating',
  'feedback',
  'lead',
]);
