// Allowed domains of the agent, and code for pages and servers.
import { ActionIcon, Alert, Anchor, Button, Group, List, Stack, Text, TextInput } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheckFilled, IconTrash, IconWorld } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { PUBLIC_ORIGIN } from '../../api/public-origin';
import { useSession } from '../../api/session';
import type { Agent } from '../../api/types';
import { widgetPagesQuery } from '../../api/widget-pages';
import { apiSnippets } from '../../components/api-snippets';
import { Card } from '../../components/Card';
import { When } from '../../components/formats';
import { Snippets } from '../../components/Snippets';
import { domainMeaning, validateDomain } from './domains';
import type { SectionProps } from './section';
import { widgetSnippets } from './widget-snippets';

const DOMAINS_MAX = 100;

export function Install({ form, isReadOnly, fieldError, agent }: SectionProps & { agent: Agent }) {
  return (
    <Stack>
      <Embed agent={agent} />
      <Domains form={form} isReadOnly={isReadOnly} fieldError={fieldError} />
      <FromServers agent={agent} />
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

function Embed({ agent }: { agent: Agent }) {
  return (
    <Card title="Put it on your page" about="No API key is needed: each visitor receives a token.">
      <Warnings agent={agent} />
      <Snippets label="Where" snippets={widgetSnippets(agent.id)} />
      <Seen agentId={agent.id} />
    </Card>
  );
}

const PAGES_SHOWN = 5;

function Seen({ agentId }: { agentId: string }) {
  const pages = useQuery(widgetPagesQuery(useSession().organization.id, agentId)).data;
  if (pages === undefined) return null;
  if (pages.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        Not seen on any page yet. Open your page, and it appears here.
      </Text>
    );
  }
  return (
    <List size="sm" icon={<IconCircleCheckFilled size={16} color="var(--mantine-color-green-7)" aria-hidden />}>
      {pages.slice(0, PAGES_SHOWN).map(({ origin, lastSeenAt }) => (
        <List.Item key={origin}>
          Last seen on {origin.replace(/^https?:\/\//, '')} <When at={lastSeenAt} />
        </List.Item>
      ))}
    </List>
  );
}

const LOOPBACK = /^(localhost|127\.|\[::1\])/;

/** Tells what keeps visitors from seeing the widget. */
function Warnings({ agent }: { agent: Agent }) {
  const { protocol, hostname } = new URL(PUBLIC_ORIGIN);
  const warnings = [
    agent.status !== 'active' && 'The agent is not published: visitors see the offline message.',
    !agent.public && 'The agent is private: pages cannot use it. Make it public under General.',
    LOOPBACK.test(hostname) &&
      'This address works on this computer only. Set public_url to the address of the service.',
    !LOOPBACK.test(hostname) &&
      protocol === 'http:' &&
      'The address begins with http: pages with https will not load it. Put the service behind https and set public_url.',
    agent.allowedDomains.length === 0 && 'Every page may use this agent. Add your domains below to prevent that.',
  ].filter((warning) => warning !== false);
  if (warnings.length === 0) return null;
  return (
    <Alert variant="light" color="yellow" icon={<IconAlertTriangle aria-hidden />} title="Before you install it">
      <List size="sm">
        {warnings.map((warning) => (
          <List.Item key={warning}>{warning}</List.Item>
        ))}
      </List>
    </Alert>
  );
}

function FromServers({ agent }: { agent: Agent }) {
  return (
    <Card
      title="Call it from a server"
      actions={
        <Anchor component={Link} to="/settings/keys" size="sm">
          API keys
        </Anchor>
      }
    >
      <Snippets label="Language" snippets={apiSnippets('agents', agent.id)} />
    </Card>
  );
}
