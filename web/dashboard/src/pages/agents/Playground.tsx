// Playground: tests the draft, the saved agent, or both with one message.
import { Alert, SegmentedControl, Stack, Text } from '@mantine/core';
import { IconInfoCircle } from '@tabler/icons-react';
import { useCallback, useEffect, useRef, useState } from 'react';
import { uploadFile } from '../../api/files';
import { runAgent } from '../../api/playground';
import { useSession } from '../../api/session';
import type { Agent } from '../../api/types';
import { ChatPanel } from '../../components/ChatPanel';
import { FileDrop } from '../../components/FileDrop';
import { type Ask, attachedIds, type Side, useChat } from '../../components/use-chat';
import { useUploads } from '../../components/use-uploads';
import { FILES_DEFAULT } from '../../file-types';
import { recordTry } from './tried';

const VIEWS = {
  draft: { label: 'Draft', sides: ['draft'], about: 'Uses the form, saved or not.' },
  saved: { label: 'Saved', sides: ['saved'], about: 'Uses the saved agent, as visitors do.' },
  both: { label: 'Side by side', sides: ['draft', 'saved'], about: 'Both answer each message.' },
} satisfies Record<string, { label: string; sides: Side[]; about: string }>;

type View = keyof typeof VIEWS;

interface PlaygroundProps {
  /** Edited fields. */
  draft: Agent;
  saved: Agent;
  /** Merge patch of the saved agent. */
  patch: Record<string, unknown>;
  mayTry: boolean;
}

export function Playground({ draft, saved, patch, mayTry }: PlaygroundProps) {
  const org = useSession().organization.id;
  const [view, setView] = useState<View>('draft');
  // Read when a message is sent, so that editing the form does not restart the chat.
  const latest = useRef(patch);
  useEffect(() => {
    latest.current = patch;
  }, [patch]);
  const ask = useCallback<Ask>(
    (side, question, history, signal) => {
      recordTry(draft.id);
      const request = { message: question.text, ...attachedIds(question), history };
      return runAgent(org, draft.id, side === 'draft' ? { ...request, draft: latest.current } : request, signal);
    },
    [org, draft.id],
  );
  const chat = useChat(ask);
  const uploads = useUploads(draft.files ?? FILES_DEFAULT, (file, signal) => uploadFile(org, draft.id, file, signal));
  const acceptsFiles = VIEWS[view].sides.every((side) => (side === 'draft' ? draft : saved).features.enableFileUpload);
  if (!mayTry) {
    return (
      <Alert variant="light" color="indigo" icon={<IconInfoCircle />} title="You need the editor role to test">
        Each message calls a model. Ask an owner for the editor role.
      </Alert>
    );
  }
  return (
    <Stack gap="xs" data-answers={VIEWS[view].sides.length}>
      <SegmentedControl
        fullWidth
        size="xs"
        aria-label="Version to test"
        value={view}
        onChange={(view) => setView(view as View)}
        data={Object.entries(VIEWS).map(([value, { label }]) => ({ value, label }))}
      />
      <Text size="xs" c="dimmed">
        {VIEWS[view].about} {acceptsFiles ? 'Only files are stored, until they expire.' : 'Nothing is stored.'}
      </Text>
      <FileDrop onDrop={acceptsFiles ? uploads.add : undefined}>
        <ChatPanel
          chat={chat}
          sides={VIEWS[view].sides}
          placeholder={draft.placeholderText}
          {...(acceptsFiles && { uploads })}
          isMarkdown={draft.features.enableMarkdown}
          suggestions={['What can you do?', 'Tell me about yourself']}
          opening={
            <div className="said" data-role="assistant">
              <Text size="sm">{draft.welcomeMessage}</Text>
            </div>
          }
        />
      </FileDrop>
    </Stack>
  );
}
