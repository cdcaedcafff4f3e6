// Entries of the audit log, latest first, of one resource or of all.
import { Badge, Button, Code, Group, Paper, Stack, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useSession } from '../api/session';
import type { Actor, AuditEntry, FieldChange } from '../api/types';
import { auditQuery } from '../api/users';
import { fieldName } from '../field-names';
import { ErrorAlert } from './ErrorAlert';
import { exactTime, When } from './formats';
import { LoadingRows } from './Page';
import { type Names, useNames } from './use-names';

const ACTIONS: Record<string, string> = {
  create: 'created',
  update: 'changed',
  delete: 'deleted',
  rotate: 'rotated',
  link: 'created a link for',
  'sign-in': 'signed in',
  'sign-out': 'signed out',
  export: 'exported',
};

const KINDS: Record<string, string> = {
  agent: 'the agent',
  team: 'the team',
  key: 'the API key',
  provider: 'the provider',
  user: 'the account of',
  conversation: 'the conversation',
  conversations: 'the conversations of',
  leads: 'the leads of',
  erasure: 'the erasure',
  organization: 'the organization',
};

export function actorName(actor: Actor): string {
  if (actor.type === 'user') return actor.email;
  return actor.type === 'token' ? 'Admin token' : 'Command line';
}

export function Changes({ kind, id }: { kind?: string; id?: string }) {
  const org = useSession().organization.id;
  const filter = { ...(kind !== undefined && { kind }), ...(id !== undefined && { id }) };
  const changes = useInfiniteQuery(auditQuery(org, filter));
  const names = useNames();
  if (changes.isPending) return <LoadingRows />;
  if (changes.isError) return <ErrorAlert error={changes.error} retry={() => void changes.refetch()} />;
  const entries = changes.data.pages.flatMap((page) => page.items);
  return (
    <Stack>
      {entries.length === 0 && (
        <Text c="dimmed" size="sm">
          No changes yet.
        </Text>
      )}
      {entries.length > 0 && (
        <Paper className="panel" component="ol" p={0} m={0} aria-label="Changes">
          {entries.map((entry) => (
            <Entry
              key={entry.id}
              entry={entry}
              names={names}
              subject={id === undefined && <Subject entry={entry} names={names} />}
            />
          ))}
        </Paper>
      )}
      {changes.hasNextPage && (
        <Group justify="center">
          <Button variant="default" loading={changes.isFetchingNextPage} onClick={() => void changes.fetchNextPage()}>
            Show older changes
          </Button>
        </Group>
      )}
    </Stack>
  );
}

interface EntryProps {
  entry: AuditEntry;
  names: Names;
  subject: ReactNode;
}

function Entry({ entry, names, subject }: EntryProps) {
  return (
    <Stack component="li" gap={4} px="md" py="sm" className="list-row plain-list">
      <Group justify="space-between" align="flex-start" gap="sm" wrap="nowrap">
        <Text size="sm" className="grow break">
          <b>{actorName(entry.actor)}</b> {ACTIONS[entry.action] ?? entry.action} {subject}
        </Text>
        <When at={entry.at} />
      </Group>
      {readable(entry.fields).map((change) => (
        <Text key={change.field} size="xs" c="dimmed" className="break">
          <Badge color="gray" size="sm" mr={6}>
            {fieldName(change.field)}
          </Badge>
          {values(change.before, change.after, names)}
        </Text>
      ))}
      {entry.address && (
        <Text size="xs" c="dimmed">
          from {entry.address}, {exactTime(entry.at)}
        </Text>
      )}
    </Stack>
  );
}

/** Leaves out versions, which are hashes, where another field tells what changed. */
function readable(fields: FieldChange[]): FieldChange[] {
  const isVersion = ({ field }: FieldChange) => /(^|\.)version$/.test(field);
  const rest = fields.filter((change) => !isVersion(change));
  if (rest.length > 0) return rest;
  return fields.map(({ field }) => ({ field: field.replace(/\.?version$/, '') || 'contents' }));
}

/** Changed resource, by name if it still exists. */
function Subject({ entry, names }: { entry: AuditEntry; names: Names }) {
  // The subject of a sign-in is the actor.
  if (entry.action === 'sign-in' || entry.action === 'sign-out') return null;
  const name = names(entry.subject);
  return (
    <>
      {KINDS[entry.kind] ?? entry.kind} {name === undefined ? <Code>{entry.subject}</Code> : <b>{name}</b>}
    </>
  );
}

/** The log has values of harmless fields only. */
function values(before: unknown, after: unknown, names: Names): string {
  const shown = (value: unknown) => {
    if (typeof value === 'boolean') return value ? 'on' : 'off';
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(', ') || 'none';
    return typeof value === 'string' ? `“${names(value) ?? value}”` : JSON.stringify(value);
  };
  if (before === undefined && after === undefined) return 'changed';
  if (before === undefined) return shown(after);
  if (after === undefined) return `${shown(before)} was removed`;
  return `${shown(before)} → ${shown(after)}`;
}
