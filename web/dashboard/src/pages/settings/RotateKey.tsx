// Creates the successor of an API key; both work until the overlap ends.
import { Button, Group, Select, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { rotateKey } from '../../api/resources';
import { useSession } from '../../api/session';
import type { ApiKey } from '../../api/types';
import { Dialog } from '../../components/Dialog';
import { ErrorAlert } from '../../components/ErrorAlert';
import { ShownOnce } from './CreateKey';

const OVERLAPS = [
  { value: '0', label: 'No overlap: revoke it immediately' },
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '1 day' },
  { value: '604800', label: '7 days' },
  { value: '2592000', label: '30 days' },
];
const OVERLAP_USUAL = '86400';

export function RotateKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const [overlap, setOverlap] = useState(OVERLAP_USUAL);
  const rotating = useMutation({
    mutationFn: () => rotateKey(org, apiKey.id, Number(overlap)),
    onSuccess: () => client.invalidateQueries({ queryKey: [org, 'keys'] }),
  });
  if (rotating.isSuccess) {
    return (
      <ShownOnce
        value={rotating.data.value}
        note={overlap === '0' ? 'The old key no longer works.' : 'The old key works until the overlap ends.'}
        onClose={onClose}
      />
    );
  }
  return (
    <Dialog onClose={onClose} title={`Rotate “${apiKey.name}”`}>
      <Stack>
        <Text size="sm">
          The new key has the same name, scopes and rate limits. Switch your programs to it while the old key still
          works.
        </Text>
        {rotating.isError && <ErrorAlert error={rotating.error} />}
        <Select
          label="Keep the old key for"
          data={OVERLAPS}
          value={overlap}
          onChange={(overlap) => setOverlap(overlap ?? OVERLAP_USUAL)}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button onClick={() => rotating.mutate()} loading={rotating.isPending} data-autofocus>
            Rotate
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
