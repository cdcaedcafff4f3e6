// Sample product file to copy or download.
import { Button, Code, Group } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useRef } from 'react';
import { CopyButton } from '../../components/CopyButton';

const SAMPLE = `title,price,link,image_link,colour
"Green tea, 100 g",$9,https://shop.example/tea,https://shop.example/tea.jpg,green
Glass teapot,$29,https://shop.example/pot,https://shop.example/pot.jpg,clear
`;

export function SampleFile() {
  const shown = useRef<HTMLPreElement>(null);
  return (
    <>
      <Code block ref={shown} className="sample" tabIndex={0} aria-label="Sample file" role="region">
        {SAMPLE}
      </Code>
      <Group gap="xs">
        <CopyButton value={SAMPLE} shown={shown} label="Copy sample" size="xs" variant="default" />
        <Button
          size="xs"
          variant="default"
          component="a"
          href={`data:text/csv;charset=utf-8,${encodeURIComponent(SAMPLE)}`}
          download="products.csv"
          leftSection={<IconDownload size={14} aria-hidden />}
        >
          Download it
        </Button>
      </Group>
    </>
  );
}
