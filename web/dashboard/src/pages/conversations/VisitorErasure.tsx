// Erases a visitor and shows receipts.
import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconEraser } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { eraseVisitor, erasuresQuery, type Visitor } from '../../api/conversations';
import type { Erasure } from '../../api/types';
import { Dialog } from '../../components/Dialog';
import { ErrorAlert } from '../../components/ErrorAlert';
import { exactTime } from '../../components/formats';

interface VisitorErasureProps {
  org: string;
  /** Visitor of the page, if known. */
  visitor?: Visitor;
  onErased?: () => void;
}

export function VisitorErasure({ org, visitor = {}, onErased }: VisitorErasureProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button variant="default" leftSection={<IconEraser size={16} aria-hidden />} onClick={() => setOpen(true)}>
        Erase visitor
      </Button>
      {isOpen && (
        <ErasureDialog
          org={org}
          visitor={visitor}
          onClose={(hasErased) => {
            setOpen(false);
            if (hasErased) onErased?.();
          }}
        />
      )}
    </>
  );
}

interface ErasureDialogProps {
  org: string;
  visitor: Visitor;
  onClose: (hasErased: boolean) => void;
}

function ErasureDialog({ org, visitor, onClose }: ErasureDialogProps) {
  const client = useQueryClient();
  const [id, setId] = useState(visitor.visitorId ?? '');
  const [email, setEmail] = useState(visitor.visitorEmail ?? '');
  const [step, setStep] = useState<Erasure>();
  const erasing = useMutation({
    mutationFn: () =>
      eraseVisitor(org, { ...(id !== '' && { visitorId: id }), ...(email !== '' && { visitorEmail: email }) }, setStep),
    onSettled: () => client.invalidateQueries({ queryKey: [org] }),
  });
  const close = () => onClose(erasing.isSuccess);
  return (
    <Dialog onClose={close} title="Erase a visitor" closeOnClickOutside={!erasing.isPending} size="lg">
      <Stack>
        {erasing.isSuccess ? (
          <Finished erasure={erasing.data} onClose={close} />
        ) : (
          <form
            onSubmit={(event) => {
              event.preventDefault();
              erasing.mutate();
            }}
          >
            <Stack>
              <Text size="sm">
                All conversations of this visitor are deleted, with all agents and teams. This cannot be undone. Only a
                receipt without a name is kept.
              </Text>
              <TextInput
                label="Email"
                type="email"
                value={email}
                onChange={(event) => setEmail(event.currentTarget.value)}
              />
              <TextInput label="Visitor id" value={id} onChange={(event) => setId(event.currentTarget.value)} />
              {step !== undefined && erasing.isPending && (
                <Text size="sm" role="status">
                  {step.lookedAt.toLocaleString()} conversations looked at, {step.conversations.toLocaleString()} erased
                  …
                </Text>
              )}
              {erasing.isError && <ErrorAlert error={erasing.error} />}
              <Group justify="flex-end">
                <Button variant="default" onClick={close} disabled={erasing.isPending}>
                  Cancel
                </Button>
                <Button type="submit" color="red" loading={erasing.isPending} disabled={id === '' && email === ''}>
                  Erase everything
                </Button>
              </Group>
            </Stack>
          </form>
        )}
        <Receipts org={org} />
      </Stack>
    </Dialog>
  );
}

function Finished({ erasure, onClose }: { erasure: Erasure; onClose: () => void }) {
  return (
    <Stack>
      <Text size="sm" role="status">
        {erasure.conversations === 0
          ? 'No conversations of this visitor were found.'
          : `Erased ${count(erasure.conversations, 'conversation')} with ${count(erasure.messages, 'message')}.`}
      </Text>
      <Text size="sm" className="break">
        Receipt {erasure.id}
      </Text>
      <Group justify="flex-end">
        <Button onClick={onClose} data-autofocus>
          Done
        </Button>
      </Group>
    </Stack>
  );
}

function Receipts({ org }: { org: string }) {
  const receipts = useQuery(erasuresQuery(org));
  const items = receipts.data?.items ?? [];
  if (receipts.isError) return <ErrorAlert error={receipts.error} />;
  if (items.length === 0) return null;
  return (
    <details className="explained">
      <summary>Receipts of earlier erasures</summary>
      <ol className="receipts">
        {items.map((erasure) => (
          <li key={erasure.id}>
            <Text size="sm">
              {exactTime(erasure.beganAt)} · {count(erasure.conversations, 'conversation')},{' '}
              {count(erasure.messages, 'message')}
              {erasure.state === 'running' && ' · unfinished: erase the same visitor again'}
            </Text>
            <Text size="xs" c="dimmed" className="break">
              {erasure.id} · {erasure.by.type === 'user' ? erasure.by.id : 'admin token'} ·{' '}
              {[erasure.visitor.visitorId, erasure.visitor.visitorEmail].filter(Boolean).join(' · ')}
            </Text>
          </li>
        ))}
      </ol>
    </details>
  );
}

function count(number: number, what: string): string {
  return `${number.toLocaleString()} ${what}${number === 1 ? '' : 's'}`;
}
