// Allowed domains of the agent and the widget snippet.
import { ActionIcon, Anchor, Button, Code, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconTrash, IconWorld } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { type FormEvent, useRef, useState } from 'react';
import { PUBLIC_ORIGIN } from '../../api/public-origin';
import { Card } from '../../components/Card';
import { CopyButton } from '../../components/CopyButton';
import { domainMeaning, validateDomain } from './domains';
import type { SectionProps } from './section';

const DOMAINS_MAX = 100;

export function Access({ form, isReadOnly, fieldError, agentId }: SectionProps & { agentId: string }) {
  return (
    <Stack>
      <Domains form={form} isReadOnly={isReadOnly} fieldError={fieldError} />
      <Embed agentId={agentId} />
    </Stack>
  );
}

function Domains({ form, isReadOnly, fieldError }: SectionProps) {
  const domains = form.fields.allowedDomains;
  const remove = (gone: string) => form.set({ allowedDomains: domains.filter((domain) => domain !== gone) });
  return (
    <Card title="Allowed domains" about="Pages that may use this agent. Leave the list empty to allow every page.">
      {domains.length > 0 && (
        <Stack gap={0} component="ul" className="plain-list" aria-label="Allowed domains">
          {domains.map((domain, index) => (
            <Group key={domain} component="li" wrap="nowrap" py="xs" className="list-row">
              <IconWorld size={18} stroke={1.6} aria-hidden />
              <div className="grow">
                <Text size="sm" fw={550} className="break">
                  {domain}
                </Text>
                <Text
                  size="xs"
                  c={fieldError(`allowedDomains[${index}]`) === undefined ? 'dimmed' : 'var(--mantine-color-error)'}
                >
                  {fieldError(`allowedDomains[${index}]`) ?? domainMeaning(domain)}
                </Text>
              </div>
              {!isReadOnly && (
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  aria-label={`Remove ${domain}`}
                  onClick={() => remove(domain)}
                >
                  <IconTrash size={16} aria-hidden />
                </ActionIcon>
              )}
            </Group>
          ))}
        </Stack>
      )}
      {!isReadOnly && (
        <AddDomain domains={domains} onAdd={(domain) => form.set({ allowedDomains: [...domains, domain] })} />
      )}
    </Card>
  );
}

function AddDomain({ domains, onAdd }: { domains: string[]; onAdd: (domain: string) => void }) {
  const [text, setText] = useState('');
  const [error, setError] = useState<string>();
  const add = (event: FormEvent) => {
    event.preventDefault();
    const entry = text.trim();
    const wrong = domains.includes(entry)
      ? 'This domain is already in the list'
      : domains.length >= DOMAINS_MAX
        ? `A list has at most ${DOMAINS_MAX} entries`
        : validateDomain(entry);
    setError(wrong);
    if (wrong !== undefined) return;
    onAdd(entry);
    setText('');
  };
  return (
    <form onSubmit={add}>
      <Group align="flex-start" gap="xs" wrap="nowrap">
        <TextInput
          className="grow"
          aria-label="Domain to allow"
          placeholder="shop.example or *.shop.example"
          description="shop.example means https. Include another scheme or port if needed."
          value={text}
          error={error}
          onChange={(event) => {
            setText(event.currentTarget.value);
            setError(undefined);
          }}
        />
        <Button type="submit" variant="default" disabled={text.trim() === ''}>
          Add
        </Button>
      </Group>
    </form>
  );
}

function Embed({ agentId }: { agentId: string }) {
  const snippet = `<script async src="${PUBLIC_ORIGIN}/v1/widget.js" data-agent-id="${agentId}"></script>`;
  const shown = useRef<HTMLPreElement>(null);
  return (
    <Card
      title="Install the widget"
      about="Paste this before the closing body tag. No API key is needed: each visitor receives a token."
    >
      <Code block ref={shown} className="text-block" tabIndex={0}>
        {snippet}
      </Code>
      <Group justify="space-between">
        <CopyButton value={snippet} shown={shown} label="Copy snippet" variant="default" />
        <Text size="sm" c="dimmed">
          Calling from a server?{' '}
          <Anchor component={Link} to="/settings/keys" size="sm" underline="always">
            Create an API key
          </Anchor>
        </Text>
      </Group>
    </Card>
  );
}
