// Talks to the live agent as a visitor of this page does, through the public API and with a visitor's token.
import { Alert, Button, Stack, Text } from '@mantine/core';
import { IconInfoCircle } from '@tabler/icons-react';
import { useCallback, useRef } from 'react';
import { type VisitorToken, visitorToken } from '../../api/chat';
import { Problem } from '../../api/client';
import type { Agent } from '../../api/types';
import { ChatPanel } from '../../components/ChatPanel';
import { Trouble } from '../../components/Trouble';
import { useChat } from '../../components/use-chat';

/** A token that ends sooner than this is not begun with. */
const TOKEN_LEFT_MIN_MS = 60_000;

interface PlaygroundProps {
  /** As it is saved, which is what answers. */
  agent: Agent;
  isChanged: boolean;
  isSaving: boolean;
  mayConfigure: boolean;
  onActivate: () => void;
  onAllowHere: () => void;
}

export function Playground({ agent, isChanged, isSaving, mayConfigure, onActivate, onAllowHere }: PlaygroundProps) {
  const held = useRef<VisitorToken | undefined>(undefined);
  const bearer = useCallback(async () => {
    const left = held.current === undefined ? 0 : new Date(held.current.expiresAt).getTime() - Date.now();
    if (held.current === undefined || left < TOKEN_LEFT_MIN_MS) held.current = await visitorToken(agent.id);
    return held.current.token;
  }, [agent.id]);
  const chat = useChat(`agents/${agent.id}`, bearer);
  if (agent.status !== 'active' || !agent.public) {
    return <NotYet agent={agent} isSaving={isSaving} mayConfigure={mayConfigure} onActivate={onActivate} />;
  }
  const explain = (error: unknown) =>
    error instanceof Problem && error.code === 'DOMAIN_NOT_ALLOWED' ? (
      <NotAllowedHere isSaving={isSaving} mayConfigure={mayConfigure} onAllowHere={onAllowHere} />
    ) : (
      <Trouble error={error} />
    );
  return (
    <Stack gap="xs">
      {isChanged && (
        <Text size="xs" c="dimmed">
          The saved agent answers. Save to try your changes.
        </Text>
      )}
      <ChatPanel
        chat={chat}
        placeholder={agent.placeholderText}
        explain={explain}
        isMarkdown={agent.features.enableMarkdown}
        suggestions={['What can you do?', 'Tell me about yourself']}
        opening={
          <div className="said" data-role="assistant">
            <Text size="sm">{agent.welcomeMessage}</Text>
          </div>
        }
      />
    </Stack>
  );
}

function NotYet({
  agent,
  isSaving,
  mayConfigure,
  onActivate,
}: Pick<PlaygroundProps, 'agent' | 'isSaving' | 'mayConfigure' | 'onActivate'>) {
  const why =
    agent.status === 'active'
      ? 'It is private: the public API does not reach it.'
      : `It is ${agent.status === 'draft' ? 'a draft' : 'switched off'}, so it answers nobody.`;
  return (
    <Alert variant="light" color="indigo" icon={<IconInfoCircle />} title="This agent cannot be tried yet">
      <Stack align="flex-start" gap="sm">
        <Text size="sm">{why} The playground talks to the live agent.</Text>
        {mayConfigure && (
          <Button size="xs" loading={isSaving} onClick={onActivate}>
            Save and make it live
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

function NotAllowedHere({
  isSaving,
  mayConfigure,
  onAllowHere,
}: Pick<PlaygroundProps, 'isSaving' | 'mayConfigure' | 'onAllowHere'>) {
  return (
    <Alert variant="light" color="yellow" icon={<IconInfoCircle />} title="This page is not among the allowed domains">
      <Stack align="flex-start" gap="sm">
        <Text size="sm">
          The playground is a page like any other. Allow <b>{window.location.origin}</b> to try the agent here.
        </Text>
        {mayConfigure && (
          <Button size="xs" variant="default" loading={isSaving} onClick={onAllowHere}>
            Allow this page
          </Button>
        )}
      </Stack>
    </Alert>
  );
}
