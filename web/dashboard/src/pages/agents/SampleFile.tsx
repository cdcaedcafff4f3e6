// A file of products as the service reads it, to copy and to begin with.
import { Button, Code, CopyButton, Group } from '@mantine/core';
import { IconCheck, IconCopy, IconDownload } from '@tabler/icons-react';

const SAMPLE = `title,price,link,image_link,colour
"Green tea, 100 g",$9,https://shop.example/tea,https://shop.example/tea.jpg,green
Glass teapot,$29,https://shop.example/pot,https://shop.example/pot.jpg,clear
`;

export function SampleFile() {
  return (
    <>
      <Code block className="sample" tabIndex={0} aria-label="Sample file" role="region">
        {SAMPLE}
      </Code>
      <Group gap="xs">
        <CopyButton value={SAMPLE}>
          {({ copied, copy }) => (
            <Button
              size="xs"
              variant="default"
              onClick={copy}
              leftSection={copied ? <IconCheck size={14} aria-hidden /> : <IconCopy size={14} aria-hidden />}
            >
              <span aria-live="polite">{copied ? 'Copied' : 'Copy sample'}</span>
            </Button>
          )}
        </CopyButton>
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
