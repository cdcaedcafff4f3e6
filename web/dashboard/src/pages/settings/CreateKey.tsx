// Creates an API key and shows it once.
import { Button, Checkbox, Collapse, NumberInput, Select, SimpleGrid, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Problem } from '../../api/client';
import { createKey } from '../../api/resources';
import { useSession } from '../../api/session';
import type { KeyFields, Scope } from '../../api/types';
import { DialogForm } from '../../components/DialogForm';
import { SecretDialog } from '../../components/SecretDialog';

const SCOPES: { scope: Scope; label: string; about: string }[] = [
  { scope: 'chat', label: 'Chat', about: 'Send messages and read replies' },
  { scope: 'config', label: 'Configuration', about: 'Read public configuration of agents' },
  { scope: 'conversations', label: 'Conversations', about: 'Read and update conversations' },
];

const DAY_MS = 24 * 60 * 60_000;
const LIVES = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
  { value: 'own', label: 'At a date…' },
];

const LIMITS: { field: keyof KeyFields['limits']; label: string; usual: number }[] = [
  { field: 'chatPerMinute', label: 'Chats', usual: 60 },
  { field: 'configPerMinute', label: 'Configuration reads', usual: 120 },
  { field: 'conversationsPerMinute', label: 'Conversation reads', usual: 120 },
];

const NO_LIMITS: KeyFields['limits'] = { chatPerMinute: null, configPerMinute: null, conversationsPerMinute: null };

export function CreateKey({ onClose }: { onClose: () => void }) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<Scope[]>(['chat']);
  const [life, setLife] = useState('');
  const [date, setDate] = useState('');
  const [limits, setLimits] = useState(NO_LIMITS);
  const [showsLimits, setShowsLimits] = useState(false);
  const expiresAt =
    life === '' ? null : life === 'own' ? endOf(date) : new Date(Date.now() + Number(life) * DAY_MS).toISOString();
  const creation = useMutation({
    // Lists all scopes instead of none, so that the key does not gain future scopes.
    mutationFn: () => createKey(org, { name: name.trim(), scopes, expiresAt: expiresAt ?? null, limits }),
    onSuccess: () => client.invalidateQueries({ queryKey: [org, 'keys'] }),
  });
  if (creation.isSuccess) return <ShownOnce value={creation.data.value} onClose={onClose} />;
  const isTaken = creation.error instanceof Problem && creation.error.code === 'CONFLICT';
  return (
    <DialogForm
      title="New API key"
      action="Create key"
      error={isTaken ? null : creation.error}
      isPending={creation.isPending}
      isIncomplete={name.trim() === '' || scopes.length === 0 || expiresAt === undefined}
      onSubmit={() => creation.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        placeholder="Shop backend, production"
        required
        withAsterisk={false}
        maxLength={200}
        data-autofocus
        value={name}
        error={isTaken ? 'A key with this name exists' : undefined}
        onChange={(event) => {
          setName(event.currentTarget.value);
          creation.reset();
        }}
      />
      <Checkbox.Group
        label="Scopes"
        description="Permissions of the key. A key in a public page should only have Chat."
        value={scopes}
        onChange={(chosen) => setScopes(chosen as Scope[])}
        error={scopes.length === 0 ? 'Choose at least one' : undefined}
      >
        <Stack gap="xs" mt="xs">
          {SCOPES.map(({ scope, label, about }) => (
            <Checkbox key={scope} value={scope} label={label} description={about} />
          ))}
        </Stack>
      </Checkbox.Group>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Select label="Expires" data={LIVES} value={life} onChange={(life) => setLife(life ?? '')} />
        {life === 'own' && (
          <TextInput
            type="date"
            label="Last day"
            required
            withAsterisk={false}
            value={date}
            onChange={(event) => setDate(event.currentTarget.value)}
          />
        )}
      </SimpleGrid>
      <div>
        <Button
          variant="subtle"
          size="compact-sm"
          aria-expanded={showsLimits}
          onClick={() => setShowsLimits((shown) => !shown)}
        >
          Rate limits per minute
        </Button>
        <Collapse expanded={showsLimits}>
          <SimpleGrid cols={{ base: 1, xs: 3 }} mt="xs">
            {LIMITS.map(({ field, label, usual }) => (
              <NumberInput
                key={field}
                label={label}
                placeholder={String(usual)}
                min={1}
                max={1_000_000}
                allowDecimal={false}
                allowNegative={false}
                value={limits[field] ?? ''}
                onChange={(value) => setLimits({ ...limits, [field]: typeof value === 'number' ? value : null })}
              />
            ))}
          </SimpleGrid>
        </Collapse>
      </div>
    </DialogForm>
  );
}

/** Returns the end of a day in the user's time zone. */
function endOf(date: string): string | undefined {
  const day = date === '' ? undefined : new Date(`${date}T23:59:59`);
  return day === undefined || Number.isNaN(day.getTime()) ? undefined : day.toISOString();
}

export function ShownOnce({ value, note, onClose }: { value: string; note?: string; onClose: () => void }) {
  return (
    <SecretDialog title="Your new key" label="API key" value={value} onClose={onClose}>
      Copy it now. It is not shown again.
      {note !== undefined && ` ${note}`}
    </SecretDialog>
  );
}
