// Chat of the playground: messages, streaming replies and their facts, with two replies side by side.
import { ActionIcon, Badge, Box, Button, Group, Loader, Stack, Text, Textarea, Tooltip } from '@mantine/core';
import { IconPlayerStop, IconRefresh, IconSend2, IconTool } from '@tabler/icons-react';
import { type ClipboardEvent, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { Attachments } from './Attachments';
import { AttachButton, PendingFiles } from './ChatFiles';
import { ErrorAlert } from './ErrorAlert';
import { seconds, took } from './formats';
import { Markdown } from './Markdown';
import { ProductStrip } from './ProductStrip';
import type { Answer, Chat, Side, ToolCall, Turn } from './use-chat';
import type { Uploads } from './use-uploads';

const SIDE_NAMES: Record<Side, string> = { draft: 'Draft', saved: 'Saved' };

interface ChatPanelProps {
  chat: Chat;
  /** Versions that receive the next message. */
  sides: Side[];
  placeholder: string;
  /** Content before the first message. */
  opening: ReactNode;
  suggestions?: string[];
  /** Files of the next message, if the agent accepts any. */
  uploads?: Uploads;
  /** Renders replies as Markdown. */
  isMarkdown?: boolean;
}

export function ChatPanel({
  chat,
  sides,
  placeholder,
  opening,
  suggestions = [],
  uploads,
  isMarkdown = true,
}: ChatPanelProps) {
  const [text, setText] = useState('');
  const log = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each change of the turns may make the log longer
  useEffect(() => {
    // Keeps the end of the conversation in view while it grows.
    if (log.current !== null) log.current.scrollTop = log.current.scrollHeight;
  }, [chat.turns]);
  const attach = useRef<HTMLButtonElement>(null);
  const hasFiles = uploads !== undefined && uploads.uploads.length > 0;
  const canSend = (question: string) =>
    (question.trim() !== '' || hasFiles) && !chat.isRunning && uploads?.isBusy !== true;
  const send = (question: string) => {
    if (!canSend(question)) return;
    setText('');
    chat.send({ text: question.trim(), files: uploads?.take() ?? [] }, sides);
  };
  const onPaste = (event: ClipboardEvent) => {
    const { files, types } = event.clipboardData;
    // Office programs add a picture of copied text.
    if (uploads === undefined || files.length === 0 || types.includes('text/plain')) return;
    event.preventDefault();
    uploads.add([...files]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send(text);
  };
  return (
    <Stack gap="sm" className="chat">
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
          <TurnView key={turn.id} turn={turn} isMarkdown={isMarkdown} />
        ))}
      </div>
      {uploads !== undefined && <PendingFiles uploads={uploads} onRemoved={() => attach.current?.focus()} />}
      <Group gap="xs" align="flex-end" wrap="nowrap">
        {uploads !== undefined && <AttachButton uploads={uploads} button={attach} />}
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
          onPaste={onPaste}
        />
        {chat.isRunning ? (
          <ActionIcon size={36} variant="default" aria-label="Stop the reply" onClick={chat.stop}>
            <IconPlayerStop size={18} aria-hidden />
          </ActionIcon>
        ) : (
          <ActionIcon size={36} aria-label="Send" onClick={() => send(text)} disabled={!canSend(text)}>
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

function TurnView({ turn, isMarkdown }: { turn: Turn; isMarkdown: boolean }) {
  return (
    <>
      {turn.question.text !== '' && (
        <div className="said text-block" data-role="user">
          <Text size="sm">{turn.question.text}</Text>
        </div>
      )}
      <Attachments files={turn.question.files} />
      <div className="answers" data-count={turn.answers.length}>
        {turn.answers.map((answer) => (
          <AnswerView key={answer.side} answer={answer} isMarkdown={isMarkdown} />
        ))}
      </div>
    </>
  );
}

function AnswerView({ answer, isMarkdown }: { answer: Answer; isMarkdown: boolean }) {
  const name = SIDE_NAMES[answer.side];
  return (
    <section className="answer" aria-label={`${name} answer`} data-side={answer.side}>
      <Text size="xs" fw={600} c="dimmed">
        {name}
      </Text>
      {answer.tools.length > 0 && (
        <Group gap={6}>
          {answer.tools.map((tool, index) => (
            <ToolBadge key={index} tool={tool} />
          ))}
        </Group>
      )}
      {answer.text === '' && (answer.state === 'waiting' || answer.state === 'running') && (
        <Loader type="dots" size="sm" aria-label="The agent is answering" />
      )}
      {answer.text !== '' && (
        <div className="said" data-role="assistant" aria-busy={answer.state === 'running'}>
          {isMarkdown ? (
            <Markdown text={answer.text} />
          ) : (
            <Text size="sm" className="text-block">
              {answer.text}
            </Text>
          )}
          {answer.state === 'running' && <span className="caret" aria-hidden />}
        </div>
      )}
      {answer.uiSpec?.type === 'product-grid' && <ProductStrip products={answer.uiSpec.data} />}
      {answer.uiSpec?.type === 'lead-form' && (
        <Text size="xs" c="dimmed">
          Visitors fill in the lead form here
        </Text>
      )}
      {answer.error !== undefined && <ErrorAlert error={answer.error} />}
      <AnswerFacts answer={answer} />
    </section>
  );
}

function ToolBadge({ tool: { name, status, tookMs } }: { tool: ToolCall }) {
  return (
    <Badge
      color={status === 'failed' ? 'red' : 'gray'}
      leftSection={<IconTool size={12} aria-hidden />}
      data-testid="tool-call"
      tt="none"
    >
      {name} {status}
      {tookMs !== undefined && ` in ${took(tookMs)}`}
    </Badge>
  );
}

function AnswerFacts({ answer }: { answer: Answer }) {
  const facts = [
    answer.firstTextMs !== undefined && `first token ${seconds(answer.firstTextMs)}`,
    answer.totalMs !== undefined && `done ${seconds(answer.totalMs)}`,
    answer.usage?.promptTokens !== undefined &&
      `${answer.usage.promptTokens} + ${answer.usage.completionTokens ?? 0} tokens`,
    answer.model,
    answer.status !== undefined && answer.status !== 'completed' && answer.status,
    answer.finishReason && answer.finishReason !== 'stop' && answer.finishReason,
  ].filter((fact): fact is string => typeof fact === 'string' && fact !== '');
  if (facts.length === 0) return null;
  return (
    <Box role="status">
      <Text size="xs" c="dimmed" data-testid="turn-facts">
        {facts.join(' · ')}
      </Text>
    </Box>
  );
}
