// Sends messages to the live team, and shows who answers and why. Teams are reached with a key only, so that a short-lived
// one is made for it and deleted again.
import { Alert, Text } from '@mantine/core';
import { IconInfoCircle } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef } from 'react';
import { useMay, useSession } from '../../api/session';
import { createKey, remove } from '../../api/things';
import type { NewKey, Team } from '../../api/types';
import { ChatPanel } from '../../components/ChatPanel';
import { useChat } from '../../components/use-chat';
import { RIGHTS } from '../../rights';

/** Should the page be closed before it deletes its key, the key ends by itself. */
const KEY_LIFE_MS = 30 * 60_000;
const KEY_LEFT_MIN_MS = 2 * 60_000;

export function Trial({ team, isChanged }: { team: Team; isChanged: boolean }) {
  const mayManageKeys = useMay(RIGHTS.manageKeys);
  if (team.status !== 'active' || !team.public) {
    return (
      <Note title="This team cannot be tried yet">
        It answers once it is active and public. Change both in its form, and save.
      </Note>
    );
  }
  if (!mayManageKeys) {
    return <Note title="You cannot try this team">Trying a team takes a key, and your role may not make one.</Note>;
  }
  return <Live team={team} isChanged={isChanged} />;
}

function Note({ title, children }: { title: string; children: string }) {
  return (
    <Alert variant="light" color="indigo" icon={<IconInfoCircle />} title={title}>
      {children}
    </Alert>
  );
}

function Live({ team, isChanged }: { team: Team; isChanged: boolean }) {
  const bearer = useShortLivedKey(`try ${team.slug}`);
  const chat = useChat(`teams/${team.id}`, bearer);
  return (
    <ChatPanel
      chat={chat}
      placeholder="What would a visitor ask?"
      opening={
        <Text size="sm" c="dimmed">
          Your message goes through the live team: you see who answers it, and why.
          {isChanged && ' The saved team answers; save to try your changes.'}
        </Text>
      }
    />
  );
}

/** A key for chats that lives as long as this page. */
function useShortLivedKey(name: string): () => Promise<string> {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const held = useRef<NewKey | undefined>(undefined);
  const drop = useCallback(() => {
    const key = held.current;
    held.current = undefined;
    if (key !== undefined)
      void remove(org, 'keys', key.id).then(() => client.invalidateQueries({ queryKey: [org, 'keys'] }));
  }, [org, client]);
  useEffect(() => {
    window.addEventListener('pagehide', drop);
    return () => {
      window.removeEventListener('pagehide', drop);
      drop();
    };
  }, [drop]);
  return useCallback(async () => {
    const left = held.current?.expiresAt ? new Date(held.current.expiresAt).getTime() - Date.now() : 0;
    if (held.current !== undefined && left > KEY_LEFT_MIN_MS) return held.current.value;
    drop();
    const limits = { chatPerMinute: null, configPerMinute: null, conversationsPerMinute: null };
    const expiresAt = new Date(Date.now() + KEY_LIFE_MS).toISOString();
    held.current = await createKey(org, {
      name: `${name} ${crypto.randomUUID().slice(0, 8)}`,
      scopes: ['chat'],
      expiresAt,
      limits,
    });
    return held.current.value;
  }, [org, name, drop]);
}
