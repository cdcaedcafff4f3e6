// Exports a filtered list; the browser streams the file to disk.
import { Button, Menu } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';

const FORMATS = [
  { format: 'csv', label: 'CSV, for spreadsheets' },
  { format: 'jsonl', label: 'JSON lines, for programs' },
] as const;

export type ExportFormat = (typeof FORMATS)[number]['format'];

export function ExportMenu({ pathOf }: { pathOf: (format: ExportFormat) => string }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" leftSection={<IconDownload size={16} aria-hidden />}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {FORMATS.map(({ format, label }) => (
          <Menu.Item key={format} component="a" href={pathOf(format)} download>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
