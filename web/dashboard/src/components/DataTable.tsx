// Table for all lists: sortable columns, and rows that open a page.
import { Paper, Table, UnstyledButton } from '@mantine/core';
import { IconArrowDown, IconArrowsSort, IconArrowUp } from '@tabler/icons-react';
import {
  type ColumnDef,
  flexRender,
  getCoreRowModel,
  getSortedRowModel,
  type Header,
  type SortingState,
  useReactTable,
} from '@tanstack/react-table';
import { useState } from 'react';

interface DataTableProps<T> {
  /** Accessible name of the table. */
  label: string;
  rows: T[];
  // biome-ignore lint/suspicious/noExplicitAny: each column has a value type of its own
  columns: ColumnDef<T, any>[];
  rowId: (row: T) => string;
  /** Called on a row click; the first cell has a link or button for the keyboard. */
  onOpen?: (row: T) => void;
}

export function DataTable<T>({ label, rows, columns, rowId, onOpen }: DataTableProps<T>) {
  const [sorting, setSorting] = useState<SortingState>([]);
  const table = useReactTable({
    data: rows,
    columns,
    state: { sorting },
    onSortingChange: setSorting,
    getRowId: rowId,
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
  });
  const open = (event: React.MouseEvent, row: T) => {
    // Controls inside the row handle their own clicks.
    if ((event.target as HTMLElement).closest('a, button, input') === null) onOpen?.(row);
  };
  return (
    <Paper className="panel table-scroll" tabIndex={0} role="region" aria-label={label}>
      <Table className="rows" verticalSpacing="sm" horizontalSpacing="md" highlightOnHover={onOpen !== undefined}>
        <Table.Thead>
          {table.getHeaderGroups().map((group) => (
            <Table.Tr key={group.id}>
              {group.headers.map((header) => (
                <Head key={header.id} header={header} />
              ))}
            </Table.Tr>
          ))}
        </Table.Thead>
        <Table.Tbody>
          {table.getRowModel().rows.map((row) => (
            <Table.Tr key={row.id} data-opens={onOpen !== undefined} onClick={(event) => open(event, row.original)}>
              {row.getVisibleCells().map((cell) => (
                <Table.Td key={cell.id} data-label={labelOf(cell.column.columnDef.header)}>
                  {flexRender(cell.column.columnDef.cell, cell.getContext())}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}

/** Column title as text, for narrow screens that show it in each row. */
function labelOf(header: unknown): string | undefined {
  return typeof header === 'string' ? header : undefined;
}

function Head<T>({ header }: { header: Header<T, unknown> }) {
  const title = flexRender(header.column.columnDef.header, header.getContext());
  if (!header.column.getCanSort()) return <Table.Th>{title}</Table.Th>;
  const sorted = header.column.getIsSorted();
  const Arrow = sorted === 'asc' ? IconArrowUp : sorted === 'desc' ? IconArrowDown : IconArrowsSort;
  const order = sorted === 'asc' ? 'ascending' : sorted === 'desc' ? 'descending' : 'none';
  return (
    <Table.Th aria-sort={order}>
      <UnstyledButton
        className="sort"
        data-sorted={sorted || undefined}
        onClick={header.column.getToggleSortingHandler()}
      >
        {title}
        <Arrow size={12} aria-hidden />
      </UnstyledButton>
    </Table.Th>
  );
}
