// Makes a key's successor; both work until the overlap ends.
import { Button, Group, Select, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useSession } from '../../api/session';
import { rotateKey } from '../../api/things';
import type { ApiKey } from '../../api/types';
import { Dialog } from '../../components/Dialog';
import { Trouble } from '../../components/Trouble';
import { ShownOnce } from './CreateKey';

const OVERLAPS = [
  { value: '0', label: 'Not at all: it ends at once' },
  { value: '3600', label: 'For an hour' },
  { value: '86400', label: 'For a day' },
  { value: '604800', label: 'For 7 days' },
  { value: '2592000', label: 'For 30 days' },
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
        note={overlap === '0' ? 'The old key does not work any more.' : 'The old key goes on until the overlap ends.'}
        onClose={onClose}
      />
    );
  }
  return (
    <Dialog onClose={onClose} title={`Rotate “${apiKey.name}”`}>
      <Stack>
        <Text size="sm">
          A new key takes over its name, scopes and limits. Give it to your programs while the old one still works.
        </Text>
        {rotating.isError && <Trouble error={rotating.error} />}
        <Select
          label="The old key goes on"
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
