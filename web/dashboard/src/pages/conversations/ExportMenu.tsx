// Exports the listed conversations; the browser streams the file to disk.
import { Button, Menu } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { type ConversationFilter, exportPath } from '../../api/conversations';

const FORMATS = [
  { format: 'csv', label: 'CSV, for spreadsheets' },
  { format: 'jsonl', label: 'JSON lines, for programs' },
] as const;

export function ExportMenu({ org, filter }: { org: string; filter: ConversationFilter }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" leftSection={<IconDownload size={16} aria-hidden />}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {FORMATS.map(({ format, label }) => (
          <Menu.Item key={format} component="a" href={exportPath(org, filter, format)} download>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
