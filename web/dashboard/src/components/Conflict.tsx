// Dialog for concurrent edits: shows the changes of the other user and lets the user choose.
import { Badge, Button, Code, Group, Stack, Table, Text } from '@mantine/core';
import { flat } from '../merge';
import { Dialog } from './Dialog';

interface ConflictProps {
  /** Changes of the other user since the form was read. */
  theirs: Record<string, unknown>;
  mine: Record<string, unknown>;
  onTakeTheirs: () => void;
  onKeepMine: () => void;
  onClose: () => void;
}

const VALUE_CHARS_MAX = 120;

function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text;
}

export function Conflict({ theirs, mine, onTakeTheirs, onKeepMine, onClose }: ConflictProps) {
  const [ofOthers, own] = [flat(theirs), flat(mine)];
  ofOthers.delete('version');
  const clashes = [...ofOthers.keys()].filter((field) => own.has(field));
  return (
    <Dialog onClose={onClose} title="Someone else saved changes" size="lg">
      <Stack>
        <Text size="sm">
          {clashes.length === 0
            ? 'They changed other fields, so both sets of changes can be kept.'
            : `You both changed ${clashes.length === 1 ? 'one field' : `${clashes.length} fields`}. Keeping yours replaces their values there; their other changes stay.`}
        </Text>
        <div className="table-scroll" tabIndex={0} role="region" aria-label="Their changes">
          <Table className="rows" withTableBorder>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Field</Table.Th>
                <Table.Th>Theirs (saved)</Table.Th>
                <Table.Th>Yours</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {[...ofOthers].map(([field, value]) => (
                <Table.Tr key={field}>
                  <Table.Td>
                    <Group gap={6} wrap="nowrap">
                      <Code>{field}</Code>
                      {own.has(field) && <Badge color="orange">both</Badge>}
                    </Group>
                  </Table.Td>
                  <Table.Td className="break">{shown(value)}</Table.Td>
                  <Table.Td className="break">{own.has(field) ? shown(own.get(field)) : ''}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
        <Group justify="flex-end">
          <Button variant="subtle" color="red" onClick={onTakeTheirs}>
            Discard my changes
          </Button>
          <Button onClick={onKeepMine} data-autofocus>
            Save my changes
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
