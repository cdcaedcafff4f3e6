// Totals per agent or team.
import { Stack, Text, Title } from '@mantine/core';
import { createColumnHelper } from '@tanstack/react-table';
import type { Totals } from '../../api/analytics';
import { DataTable } from '../../components/DataTable';
import { count, part, stars, time } from './numbers';

export interface Row {
  id: string;
  name: string | null;
  totals: Totals;
}

const column = createColumnHelper<Row>();
const cellText = (value: string) => <Text size="sm">{value}</Text>;

const COLUMNS = [
  column.accessor((row) => row.name ?? 'Deleted', { id: 'name', header: 'Name' }),
  column.accessor((row) => row.totals.conversations, {
    id: 'conversations',
    header: 'Conversations',
    cell: ({ getValue }) => cellText(count(getValue())),
  }),
  column.accessor((row) => row.totals.messages, {
    id: 'messages',
    header: 'Messages',
    cell: ({ getValue }) => cellText(count(getValue())),
  }),
  column.accessor((row) => row.totals.replies.completed / Math.max(1, row.totals.messages), {
    id: 'answered',
    header: 'Answered',
    cell: ({ row: { original } }) => cellText(part(original.totals.replies.completed, original.totals.messages)),
  }),
  column.accessor((row) => row.totals.responseTime.p50Ms ?? undefined, {
    id: 'response',
    header: 'Response time',
    sortUndefined: 'last',
    cell: ({ getValue }) => cellText(time(getValue() ?? null)),
  }),
  column.accessor((row) => row.totals.firstTextTime.p50Ms ?? undefined, {
    id: 'first',
    header: 'Time to first token',
    sortUndefined: 'last',
    cell: ({ getValue }) => cellText(time(getValue() ?? null)),
  }),
  column.accessor((row) => row.totals.tokens.prompt + row.totals.tokens.completion, {
    id: 'tokens',
    header: 'Tokens',
    cell: ({ getValue }) => cellText(count(getValue())),
  }),
  column.accessor((row) => row.totals.ratings.average ?? undefined, {
    id: 'rating',
    header: 'Rating',
    sortUndefined: 'last',
    cell: ({ getValue }) => cellText(stars(getValue() ?? null)),
  }),
];

export function Breakdown({ title, rows }: { title: string; rows: Row[] }) {
  if (rows.length === 0) return null;
  return (
    <Stack gap="xs">
      <Title order={2}>{title}</Title>
      <DataTable label={title} rows={rows} columns={COLUMNS} rowId={(row) => row.id} />
    </Stack>
  );
}
