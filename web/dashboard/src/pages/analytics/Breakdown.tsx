// Totals per agent or team.
import { Stack, Text, Title } from '@mantine/core';
import { createColumnHelper } from '@tanstack/react-table';
import type { Figures } from '../../api/analytics';
import { DataTable } from '../../components/DataTable';
import { count, part, stars, time } from './numbers';

export interface Row {
  id: string;
  name: string | null;
  figures: Figures;
}

const column = createColumnHelper<Row>();
const figure = (value: string) => <Text size="sm">{value}</Text>;

const COLUMNS = [
  column.accessor((row) => row.name ?? 'Deleted', { id: 'name', header: 'Name' }),
  column.accessor((row) => row.figures.conversations, {
    id: 'conversations',
    header: 'Conversations',
    cell: ({ getValue }) => figure(count(getValue())),
  }),
  column.accessor((row) => row.figures.messages, {
    id: 'messages',
    header: 'Messages',
    cell: ({ getValue }) => figure(count(getValue())),
  }),
  column.accessor((row) => row.figures.replies.completed / Math.max(1, row.figures.messages), {
    id: 'answered',
    header: 'Answered',
    cell: ({ row: { original } }) => figure(part(original.figures.replies.completed, original.figures.messages)),
  }),
  column.accessor((row) => row.figures.responseTime.p50Ms ?? undefined, {
    id: 'response',
    header: 'Response time',
    sortUndefined: 'last',
    cell: ({ getValue }) => figure(time(getValue() ?? null)),
  }),
  column.accessor((row) => row.figures.firstTextTime.p50Ms ?? undefined, {
    id: 'first',
    header: 'Time to first token',
    sortUndefined: 'last',
    cell: ({ getValue }) => figure(time(getValue() ?? null)),
  }),
  column.accessor((row) => row.figures.tokens.prompt + row.figures.tokens.completion, {
    id: 'tokens',
    header: 'Tokens',
    cell: ({ getValue }) => figure(count(getValue())),
  }),
  column.accessor((row) => row.figures.ratings.average ?? undefined, {
    id: 'rating',
    header: 'Rating',
    sortUndefined: 'last',
    cell: ({ getValue }) => figure(stars(getValue() ?? null)),
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
