// The chat of a playground: questions, replies as they are made, and the facts of each.
import { ActionIcon, Badge, Box, Button, Group, Loader, Stack, Text, Textarea, Tooltip } from '@mantine/core';
import { IconPlayerStop, IconRefresh, IconSend2, IconTool } from '@tabler/icons-react';
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { seconds } from './Facts';
import { Markdown } from './Markdown';
import { ProductStrip } from './ProductStrip';
import { Trouble } from './Trouble';
import type { Chat, Turn } from './use-chat';

interface ChatPanelProps {
  chat: Chat;
  placeholder: string;
  /** Shown before the first message. */
  opening: ReactNode;
  /** What can be done about a refusal. */
  explain?: (error: unknown) => ReactNode;
  suggestions?: string[];
  /** Whether replies are shown as the markdown that they are. */
  isMarkdown?: boolean;
}

export function ChatPanel({
  chat,
  placeholder,
  opening,
  explain,
  suggestions = [],
  isMarkdown = true,
}: ChatPanelProps) {
  const [text, setText] = useState('');
  const log = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each change of the turns may make the log longer
  useEffect(() => {
    // The end of the conversation stays in view while it grows.
    if (log.current !== null) log.current.scrollTop = log.current.scrollHeight;
  }, [chat.turns]);
  const send = (question: string) => {
    if (question.trim() === '' || chat.isRunning) return;
    setText('');
    void chat.send(question.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send(text);
  };
  return (
    <Stack gap="sm" h={560}>
      <div className="chat-log grow" ref={log} tabIndex={0} role="region" aria-label="Test conversation">
        {chat.turns.length === 0 && opening}
        {chat.turns.length === 0 && (
          <Group gap="xs">
            {suggestions.map((suggestion) => (
              <Button key={suggestion} size="compact-sm" variant="default" radius="xl" onClick={() => send(suggestion)}>
                {suggestion}
              </Button>
            ))}
          </Group>
        )}
        {chat.turns.map((turn) => (
          <TurnView key={turn.id} turn={turn} explain={explain} isMarkdown={isMarkdown} />
        ))}
      </div>
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <Textarea
          className="grow"
          aria-label="Message"
          placeholder={placeholder}
          autosize
          minRows={1}
          maxRows={5}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {chat.isRunning ? (
          <ActionIcon size={36} variant="default" aria-label="Stop the reply" onClick={chat.stop}>
            <IconPlayerStop size={18} aria-hidden />
          </ActionIcon>
        ) : (
          <ActionIcon size={36} aria-label="Send" onClick={() => send(text)} disabled={text.trim() === ''}>
            <IconSend2 size={18} aria-hidden />
          </ActionIcon>
        )}
        <Tooltip label="Start over">
          <ActionIcon
            size={36}
            variant="subtle"
            color="gray"
            aria-label="Start over"
            onClick={chat.restart}
            disabled={chat.turns.length === 0}
          >
            <IconRefresh size={18} aria-hidden />
          </ActionIcon>
        </Tooltip>
      </Group>
    </Stack>
  );
}

function TurnView({
  turn,
  explain,
  isMarkdown,
}: {
  turn: Turn;
  explain: ChatPanelProps['explain'];
  isMarkdown: boolean;
}) {
  return (
    <>
      <div className="said text-block" data-role="user">
        <Text size="sm">{turn.question}</Text>
      </div>
      {turn.routingReason && (
        <Text size="xs" c="dimmed">
          <b>{turn.agentName}</b> was chosen: {turn.routingReason}
        </Text>
      )}
      {turn.tools.length > 0 && (
        <Group gap={6}>
          {turn.tools.map((tool) => (
            <Badge
              key={tool.name}
              color={tool.status === 'failed' ? 'red' : 'gray'}
              leftSection={<IconTool size={12} aria-hidden />}
            >
              {tool.name} {tool.status}
            </Badge>
          ))}
        </Group>
      )}
      {turn.text === '' && (turn.state === 'waiting' || turn.state === 'running') && (
        <Loader type="dots" size="sm" aria-label="The agent is answering" />
      )}
      {turn.text !== '' && (
        <div className="said" data-role="assistant" aria-busy={turn.state === 'running'}>
          {isMarkdown ? (
            <Markdown text={turn.text} />
          ) : (
            <Text size="sm" className="text-block">
              {turn.text}
            </Text>
          )}
          {turn.state === 'running' && <span className="caret" aria-hidden />}
        </div>
      )}
      {turn.uiSpec?.type === 'product-grid' && <ProductStrip products={turn.uiSpec.data} />}
      {turn.error !== undefined && (explain?.(turn.error) ?? <Trouble error={turn.error} />)}
      <TurnFacts turn={turn} />
    </>
  );
}

function TurnFacts({ turn }: { turn: Turn }) {
  const facts = [
    turn.firstTokenMs !== undefined && `first word ${seconds(turn.firstTokenMs)}`,
    turn.totalMs !== undefined && `done ${seconds(turn.totalMs)}`,
    turn.usage?.promptTokens !== undefined && `${turn.usage.promptTokens} + ${turn.usage.completionTokens ?? 0} tokens`,
    turn.model,
    turn.status !== undefined && turn.status !== 'completed' && turn.status,
    turn.finishReason && turn.finishReason !== 'stop' && turn.finishReason,
  ].filter((fact): fact is string => typeof fact === 'string' && fact !== '');
  if (facts.length === 0) return null;
  return (
    <Box mt={-6} role="status">
      <Text size="xs" c="dimmed" data-testid="turn-facts">
        {facts.join(' · ')}
      </Text>
    </Box>
  );
}
