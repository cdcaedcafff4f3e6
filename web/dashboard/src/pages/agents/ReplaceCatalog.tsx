// Preview of a product file before it replaces the catalog.
import { Alert, Button, Group, List, Loader, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import {
  type KeptProducts,
  type ProductsPreview,
  previewProducts,
  type ReportedRows,
  uploadProducts,
} from '../../api/products';
import { useSession } from '../../api/session';
import { Dialog } from '../../components/Dialog';
import { count } from './count';
import { UploadError } from './UploadError';

interface ReplaceCatalogProps {
  agentId: string;
  file: File;
  onReplaced: (kept: KeptProducts) => Promise<void>;
  onClose: () => void;
}

export function ReplaceCatalog({ agentId, file, onReplaced, onClose }: ReplaceCatalogProps) {
  const org = useSession().organization.id;
  const preview = useQuery({
    queryKey: [org, 'products', agentId, 'preview', file.name, file.size, file.lastModified],
    queryFn: () => previewProducts(org, agentId, file),
    gcTime: 0,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const read = preview.data;
  const replacing = useMutation({
    mutationFn: () => uploadProducts(org, agentId, file, read?.risk != null),
    onSuccess: async (kept) => {
      onClose();
      await onReplaced(kept);
    },
  });
  const title = read === undefined ? 'Preview' : `Replace ${count(read.currentCount, 'product')}?`;
  return (
    <Dialog onClose={onClose} title={title}>
      <Stack>
        {preview.isPending && (
          <Group gap="xs" role="status">
            <Loader size="xs" aria-hidden />
            <Text size="sm">Reading {file.name}…</Text>
          </Group>
        )}
        {preview.isError && <UploadError error={preview.error} />}
        {replacing.isError && <UploadError error={replacing.error} />}
        {read !== undefined && (
          <>
            <Text size="sm">
              <b>{file.name}</b> has {count(read.count, 'product')}. You can restore the current ones afterwards.
            </Text>
            {read.risk !== null && (
              <Alert
                color="red"
                variant="light"
                icon={<IconAlertTriangle aria-hidden />}
                title="Is this the right file?"
              >
                {risk(read.risk)}
              </Alert>
            )}
            <Stack gap={0} component="ul" className="plain-list" aria-label="First products of the file">
              {read.first.map((product, index) => (
                <Group key={index} component="li" wrap="nowrap" justify="space-between" className="list-row" py={4}>
                  <Text size="sm" className="break">
                    {product.title}
                  </Text>
                  <Text size="sm" className="nowrap">
                    {product.price}
                  </Text>
                </Group>
              ))}
            </Stack>
            <FileReport of={read} />
          </>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          {read !== undefined && (
            <Button
              color={read.risk === null ? undefined : 'red'}
              loading={replacing.isPending}
              onClick={() => replacing.mutate()}
            >
              {read.risk === null ? 'Replace catalog' : 'Replace anyway'}
            </Button>
          )}
        </Group>
      </Stack>
    </Dialog>
  );
}

function risk(text: string): string {
  return `${text.replace(/^it/, 'The file').replace(/^(\d+) of its/, '$1 of the file’s')}.`;
}

/** Columns and rows of a file that were not taken as they are. */
export function FileReport({ of }: { of: ProductsPreview | KeptProducts }) {
  const misspelled = of.attributeColumns.filter(({ meant }) => meant !== null);
  const attributes = of.attributeColumns.filter(({ meant }) => meant === null);
  return (
    <>
      {misspelled.length > 0 && (
        <Alert variant="light" color="yellow" title="Unknown columns">
          {misspelled.map(({ name, meant }) => (
            <Text key={name} size="sm">
              “{name}” became an attribute. Did you mean “{meant}”?
            </Text>
          ))}
        </Alert>
      )}
      <RowReport rows={of.rejected} what="skipped" />
      <RowReport rows={of.leftOut} what="not shown in the shop and left out" />
      <RowReport rows={of.warnings} what="with a remark" />
      {attributes.length > 0 && (
        <Text size="xs" c="dimmed" className="break">
          Attributes: {attributes.map(({ name }) => name).join(', ')}
        </Text>
      )}
    </>
  );
}

/** Rows with something to report, and the reasons of the first ones. */
function RowReport({ rows, what }: { rows: ReportedRows; what: string }) {
  if (rows.count === 0) return null;
  return (
    <Alert variant="light" color="yellow" title={`${count(rows.count, 'row')} ${what}`}>
      <List size="sm" spacing={2}>
        {rows.first.map(({ row, reason }) => (
          <List.Item key={row}>
            Row {row}: {reason}
          </List.Item>
        ))}
      </List>
      {rows.count > rows.first.length && <Text size="sm">and {count(rows.count - rows.first.length, 'more row')}</Text>}
    </Alert>
  );
}
