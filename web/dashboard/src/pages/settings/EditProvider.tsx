// Creates or changes a provider. Its API key is write-only.
import { Button, Group, NumberInput, PasswordInput, Select, Stack, Switch, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { findFieldError } from '../../api/client';
import { change, create } from '../../api/resources';
import { useSession } from '../../api/session';
import type { Provider, ProviderFields } from '../../api/types';
import { Dialog } from '../../components/Dialog';
import { ErrorAlert } from '../../components/ErrorAlert';
import { validateSlug } from '../../slug';
import { useHold } from '../../use-held-session';
import { ConnectionTest } from './ConnectionTest';
import { DeleteProvider } from './DeleteProvider';

const NEW: ProviderFields = {
  slug: '',
  baseUrl: 'https://api.openai.com/v1',
  api: 'chat-completions',
  model: 'gpt-5.4-mini',
  embeddingModel: null,
  continuesPrefix: false,
  firstTokenTimeoutMs: null,
  vision: false,
};

const APIS = [
  { value: 'chat-completions', label: 'Chat completions (nearly all providers)' },
  { value: 'responses', label: 'Responses' },
] as const;

/** Returns true if both addresses have the same scheme, host and port; the service removes a key otherwise. */
function isSameServer(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).origin === new URL(other).origin;
}

export function EditProvider({ provider, onClose }: { provider: Provider | undefined; onClose: () => void }) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  useHold(true);
  const [fields, setFields] = useState<ProviderFields>(provider ?? NEW);
  const [apiKey, setApiKey] = useState('');
  const [isKeyGone, setKeyGone] = useState(false);
  const set = (changes: Partial<ProviderFields>) => setFields({ ...fields, ...changes });
  const done = async () => {
    await client.invalidateQueries({ queryKey: [org] });
    onClose();
  };
  const saving = useMutation({
    mutationFn: () => {
      const { slug, baseUrl, api, model, embeddingModel, continuesPrefix, firstTokenTimeoutMs, vision } = fields;
      // A missing key stays, an empty one is removed.
      const key = apiKey !== '' ? { apiKey } : isKeyGone ? { apiKey: '' } : {};
      const settings = { api, model, embeddingModel, continuesPrefix, firstTokenTimeoutMs, vision };
      const body = { slug, baseUrl, ...settings, ...key };
      return provider === undefined
        ? create(org, 'providers', body)
        : change(org, 'providers', provider.id, body, undefined);
    },
    onSuccess: async () => {
      notifications.show({ color: 'green', message: 'Saved. Changes take effect within two seconds.' });
      await done();
    },
  });
  const [isRemoving, setRemoving] = useState(false);
  const fieldError = (field: string) => findFieldError(saving.error, field);
  const slugWrong = fields.slug === '' || provider !== undefined ? undefined : validateSlug(fields.slug);
  const isSaved = provider === undefined || (fields === provider && apiKey === '' && !isKeyGone);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    saving.mutate();
  };
  return (
    <Dialog onClose={onClose} title={provider === undefined ? 'New provider' : `Provider ${provider.slug}`}>
      <form onSubmit={submit}>
        <Stack>
          {saving.error !== null && <ErrorAlert error={saving.error} />}
          <TextInput
            label="Slug"
            placeholder="main"
            description="Identifier in files and agents. It cannot be changed later."
            required
            withAsterisk={false}
            readOnly={provider !== undefined}
            variant={provider === undefined ? 'default' : 'filled'}
            value={fields.slug}
            error={slugWrong ?? fieldError('slug')}
            onChange={(event) => set({ slug: event.currentTarget.value })}
          />
          <TextInput
            label="Base URL"
            description="A public address. The operator must allow private networks."
            required
            withAsterisk={false}
            value={fields.baseUrl}
            error={fieldError('baseUrl')}
            onChange={(event) => set({ baseUrl: event.currentTarget.value })}
          />
          <Select
            label="API"
            description="Newer models of OpenAI use tools and reasoning together only in the Responses API."
            data={APIS}
            value={fields.api}
            error={fieldError('api')}
            onChange={(value) => set({ api: APIS.find((api) => api.value === value)?.value })}
          />
          <PasswordInput
            label="API key"
            autoComplete="off"
            placeholder={provider?.hasApiKey && !isKeyGone ? 'A key is stored; type to replace it' : 'None'}
            description={
              provider?.hasApiKey && !isSameServer(provider.baseUrl, fields.baseUrl)
                ? 'The stored key belongs to another server and will be removed. Enter the key of this one.'
                : 'Stored encrypted and never shown.'
            }
            value={apiKey}
            error={fieldError('apiKey')}
            onChange={(event) => setApiKey(event.currentTarget.value)}
          />
          {provider?.hasApiKey && (
            <Switch
              label="Remove key"
              checked={isKeyGone}
              onChange={(event) => setKeyGone(event.currentTarget.checked)}
            />
          )}
          <TextInput
            label="Model"
            required
            withAsterisk={false}
            value={fields.model}
            error={fieldError('model')}
            onChange={(event) => set({ model: event.currentTarget.value })}
          />
          <TextInput
            label="Embedding model"
            description="For routing by intent. Optional."
            value={fields.embeddingModel ?? ''}
            error={fieldError('embeddingModel')}
            onChange={(event) => set({ embeddingModel: event.currentTarget.value || null })}
          />
          <NumberInput
            label="Seconds until the first word"
            description="How long the model may stay silent. Empty: 45 seconds, or what the installation says."
            min={1}
            max={90}
            value={fields.firstTokenTimeoutMs ? fields.firstTokenTimeoutMs / 1000 : ''}
            error={fieldError('firstTokenTimeoutMs')}
            onChange={(value) =>
              set({ firstTokenTimeoutMs: typeof value === 'number' ? Math.round(value * 1000) : null })
            }
          />
          <Switch
            label="Supports prefill"
            description="The endpoint can continue an unfinished assistant message, so that a reply continues after the loss of a worker."
            checked={fields.continuesPrefix}
            onChange={(event) => set({ continuesPrefix: event.currentTarget.checked })}
          />
          <Switch
            label="Models see pictures"
            description="Pictures of visitors are sent to the model; otherwise the agent says that it cannot see them."
            checked={fields.vision}
            onChange={(event) => set({ vision: event.currentTarget.checked })}
          />
          {provider !== undefined && <ConnectionTest provider={provider} isSaved={isSaved} />}
          <Group justify="space-between">
            {provider === undefined ? (
              <span />
            ) : (
              <Button variant="subtle" color="red" onClick={() => setRemoving(true)}>
                Delete
              </Button>
            )}
            <Group>
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button type="submit" loading={saving.isPending} disabled={fields.slug === '' || slugWrong !== undefined}>
                Save
              </Button>
            </Group>
          </Group>
        </Stack>
      </form>
      {provider !== undefined && isRemoving && (
        <DeleteProvider provider={provider} onClose={() => setRemoving(false)} onDeleted={onClose} />
      )}
    </Dialog>
  );
}
