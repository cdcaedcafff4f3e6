// Catalog of an upload or a feed: size, age, skipped rows, replacement.
import { Button, FileButton, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconArrowBackUp, IconFileUpload, IconInfoCircle, IconPackage } from '@tabler/icons-react';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import {
  type FetchedFeed,
  type KeptProducts,
  removeProducts,
  restoreProducts,
  uploadProducts,
} from '../../api/products';
import { useSession } from '../../api/session';
import { Card } from '../../components/Card';
import { Confirm } from '../../components/Confirm';
import { FileDrop } from '../../components/FileDrop';
import { When } from '../../components/formats';
import { count } from './count';
import { FileReport, ReplaceCatalog } from './ReplaceCatalog';
import { SampleFile } from './SampleFile';
import { UploadError } from './UploadError';

const FILES = '.csv,.tsv,.txt,.json,.jsonl,.ndjson,.xml,.xlsx,text/csv,application/json,application/xml';

interface CatalogProps {
  agentId: string;
  kept: KeptProducts | null;
  /** While there is a feed, only it changes the products. */
  feed: FetchedFeed | null;
  isReadOnly: boolean;
}

export function Catalog({ agentId, kept, feed, isReadOnly }: CatalogProps) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const [replacement, setReplacement] = useState<File>();
  const [isRemoving, setRemoving] = useState(false);
  const [restored, setRestored] = useState<KeptProducts['restorable'][number]>();
  const readAgain = () => client.invalidateQueries({ queryKey: [org, 'products', agentId] });
  const showImported = async (taken: KeptProducts) => {
    notifications.show({ color: 'green', message: `Imported ${count(taken.count, 'product')}.` });
    await readAgain();
  };
  const restorable = kept?.restorable ?? [];
  const uploading = useMutation({
    mutationFn: (file: File) => uploadProducts(org, agentId, file, false),
    onSuccess: showImported,
  });
  const pickAgain = useRef<() => void>(null);
  const mayUpload = !isReadOnly && feed === null;
  const take = (file: File | null | undefined) => {
    // Allows choosing the same file again after a correction.
    pickAgain.current?.();
    if (file == null || !mayUpload || uploading.isPending) return;
    if (kept === null) uploading.mutate(file);
    else setReplacement(file);
  };
  const upload = mayUpload && (
    <FileButton onChange={take} accept={FILES} resetRef={pickAgain} inputProps={{ 'aria-label': 'Product file' }}>
      {(props) => (
        <Button
          {...props}
          variant={kept === null ? 'filled' : 'default'}
          loading={uploading.isPending}
          leftSection={<IconFileUpload size={16} aria-hidden />}
        >
          {kept === null ? 'Upload a file' : 'Replace with a file'}
        </Button>
      )}
    </FileButton>
  );
  return (
    <FileDrop onDrop={mayUpload ? (files) => take(files[0]) : undefined}>
      <Card title="Catalog" about="Up to 50,000 products from an Excel (.xlsx), CSV, JSON or XML file, or from a feed.">
        {uploading.isError && <UploadError error={uploading.error} />}
        {kept === null ? <None isReadOnly={isReadOnly} feed={feed} /> : <Facts kept={kept} />}
        {kept === null && mayUpload && <SampleFile />}
        {feed !== null && !isReadOnly && (
          <Group gap="xs" wrap="nowrap" align="flex-start" c="dimmed">
            <IconInfoCircle size={18} aria-hidden className="no-shrink" />
            <Text size="sm">The feed below updates these products. Remove it to upload a file.</Text>
          </Group>
        )}
        {!isReadOnly &&
          restorable.map((version, index) => (
            <Group key={version.version}>
              <Button
                variant="subtle"
                leftSection={<IconArrowBackUp size={16} aria-hidden />}
                onClick={() => setRestored(version)}
              >
                {index === 0 ? 'Restore previous catalog' : 'Restore older catalog'}
              </Button>
              <Text size="xs" c="dimmed" component="div">
                {count(version.count, 'product')}, <When at={version.storedAt} />
              </Text>
            </Group>
          ))}
        {mayUpload && (
          <Group gap="xs">
            {upload}
            <Text size="xs" c="dimmed" visibleFrom="sm">
              or drop it here
            </Text>
            {kept !== null && (
              <Button variant="subtle" color="red" onClick={() => setRemoving(true)}>
                Delete all
              </Button>
            )}
          </Group>
        )}
      </Card>
      {replacement !== undefined && (
        <ReplaceCatalog
          agentId={agentId}
          file={replacement}
          onReplaced={showImported}
          onClose={() => setReplacement(undefined)}
        />
      )}
      {restored !== undefined && (
        <Confirm
          title={`Restore ${count(restored.count, 'product')}?`}
          action="Restore"
          onConfirm={() => restoreProducts(org, agentId, restored.version).then(readAgain)}
          onClose={() => setRestored(undefined)}
        >
          They were replaced by the current ones, which you can restore in the same way.
          {feed !== null && ' The feed replaces them again when its file changes.'}
        </Confirm>
      )}
      {isRemoving && kept !== null && (
        <Confirm
          title={`Delete ${count(kept.count, 'product')}?`}
          action="Delete all"
          onConfirm={() => removeProducts(org, agentId).then(readAgain)}
          onClose={() => setRemoving(false)}
        >
          The agent stops showing them within two seconds. Manual products stay.
        </Confirm>
      )}
    </FileDrop>
  );
}

function None({ isReadOnly, feed }: { isReadOnly: boolean; feed: FetchedFeed | null }) {
  if (feed !== null) return <Text size="sm">Not fetched yet.</Text>;
  return (
    <Group gap="sm" wrap="nowrap" align="flex-start">
      <IconPackage size={28} stroke={1.4} aria-hidden className="no-shrink" />
      <div>
        <Text size="sm" fw={550}>
          No products yet
        </Text>
        <Text size="sm" c="dimmed">
          {isReadOnly
            ? 'An editor can upload a file or add a feed.'
            : 'Export them from your shop, or start from this sample. Only the title is required.'}
        </Text>
      </div>
    </Group>
  );
}

function Facts({ kept }: { kept: KeptProducts }) {
  return (
    <>
      <div>
        <Text size="xl" fw={650} data-testid="products-count">
          {count(kept.count, 'product')}
        </Text>
        <Text size="sm" c="dimmed" component="div">
          {kept.source.kind === 'upload' ? 'From a file' : 'From the feed'}, updated <When at={kept.storedAt} />
        </Text>
      </div>
      <FileReport of={kept} />
    </>
  );
}
