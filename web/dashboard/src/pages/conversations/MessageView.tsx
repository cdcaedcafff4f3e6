// One message of a transcript.
import { Badge, Group, Stack, Text, Tooltip } from '@mantine/core';
import type { Message } from '../../api/types';
import { Attachments } from '../../components/Attachments';
import { exactTime, seconds } from '../../components/formats';
import { Markdown } from '../../components/Markdown';
import { ProductStrip } from '../../components/ProductStrip';
import { providerWords } from '../../provider-words';
import { ReplyTimeline } from './ReplyTimeline';

const STATUS_LABELS: Record<string, string> = { incomplete: 'Interrupted', failed: 'Failed', cancelled: 'Stopped' };

const FAILURES: Record<string, string> = {
  model_error: 'the model returned an error or an invalid response',
  model_unavailable: 'the model was unreachable',
  model_timeout: 'the model timed out',
  deadline_exceeded: 'the deadline was exceeded',
  attempts_exhausted: 'all attempts failed',
  agent_unavailable: 'the agent was deleted or inactive',
  no_route: 'no team member was available',
  internal: 'internal error',
};

export function MessageView({ message, withAgent }: { message: Message; withAgent: boolean }) {
  const isVisitor = message.role === 'user';
  return (
    <Stack
      gap={6}
      align={isVisitor ? 'flex-end' : 'flex-start'}
      component="article"
      data-from={isVisitor ? 'visitor' : 'agent'}
      aria-label={isVisitor ? 'Visitor' : (message.agentName ?? 'Agent')}
    >
      {withAgent && message.agentName !== undefined && (
        <Text size="xs" fw={600}>
          {message.agentName}
        </Text>
      )}
      {message.content !== '' && (
        <div className="said" data-role={message.role}>
          {isVisitor ? (
            <Text size="sm" className="text-block">
              {message.content}
            </Text>
          ) : (
            <Markdown text={message.content} />
          )}
        </div>
      )}
      <Attachments files={message.attachments} />
      {message.uiSpec?.type === 'product-grid' && (
        <div className="wide">
          <ProductStrip products={message.uiSpec.data} />
        </div>
      )}
      {message.uiSpec?.type === 'lead-form' && (
        <Text size="xs" c="dimmed">
          Showed the lead form
        </Text>
      )}
      {message.routingReason && (
        <Text size="xs" c="dimmed">
          Routing: {message.routingReason}
        </Text>
      )}
      <MessageFacts message={message} />
      {!isVisitor && <ReplyTimeline message={message} />}
      {message.unanswered !== undefined && <MissingReply about={message.unanswered} />}
    </Stack>
  );
}

function MessageFacts({ message }: { message: Message }) {
  const error = STATUS_LABELS[message.status ?? ''];
  const tokens = message.usage?.completionTokens;
  const facts = [
    new Date(message.timestamp).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' }),
    message.responseTime != null && seconds(message.responseTime),
    tokens !== undefined &&
      `${(message.usage?.promptTokens ?? 0).toLocaleString()} + ${tokens.toLocaleString()} tokens`,
    message.model,
    message.finishReason &&
      message.finishReason !== 'stop' &&
      message.finishReason !== message.status &&
      `finish reason ${message.finishReason}`,
  ].filter((fact): fact is string => typeof fact === 'string' && fact !== '');
  return (
    <Group gap={6}>
      {error !== undefined && <Badge color="orange">{error}</Badge>}
      <Tooltip label={exactTime(message.timestamp)}>
        <Text size="xs" c="dimmed">
          {facts.join(' · ')}
        </Text>
      </Tooltip>
    </Group>
  );
}

function MissingReply({ about }: { about: NonNullable<Message['unanswered']> }) {
  const reason = FAILURES[about.failure ?? ''];
  return (
    <Group gap={6}>
      <Badge color="orange">{STATUS_LABELS[about.status] ?? 'No reply'}</Badge>
      <Text size="xs" c="dimmed">
        No reply{reason === undefined ? '' : `: ${reason}`} · {seconds(about.responseTime)}
      </Text>
      {about.providerError !== null && (
        <Text size="xs" c="dimmed">
          The provider said: {providerWords(about.providerError)}
        </Text>
      )}
    </Group>
  );
}
