// One message of a transcript, with how its reply came about.
import { Badge, Group, Stack, Text, Tooltip } from '@mantine/core';
import type { Message } from '../../api/types';
import { exactTime, seconds } from '../../components/Facts';
import { Markdown } from '../../components/Markdown';
import { ProductStrip } from '../../components/ProductStrip';
import { Explained } from './Explained';

const TROUBLED: Record<string, string> = { incomplete: 'broke off', failed: 'failed', cancelled: 'was stopped' };

const FAILURES: Record<string, string> = {
  model_error: 'the model refused, or answered what is no answer',
  model_unavailable: 'the model could not be reached',
  model_timeout: 'the model stayed silent',
  deadline_exceeded: 'it took too long',
  attempts_exhausted: 'every attempt was lost',
  agent_unavailable: 'the agent was gone, or not active',
  no_route: 'nobody of the team could answer',
  internal: 'a fault of the service',
};

export function MessageView({ message, withAgent }: { message: Message; withAgent: boolean }) {
  const isVisitor = message.role === 'user';
  return (
    <Stack
      gap={6}
      align={isVisitor ? 'flex-end' : 'flex-start'}
      component="article"
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
      {message.uiSpec?.type === 'product-grid' && (
        <div className="wide">
          <ProductStrip products={message.uiSpec.data} />
        </div>
      )}
      {message.routingReason && (
        <Text size="xs" c="dimmed">
          Chosen because: {message.routingReason}
        </Text>
      )}
      <MessageFacts message={message} />
      {!isVisitor && <Explained message={message} />}
      {message.unanswered !== undefined && <Unanswered about={message.unanswered} />}
    </Stack>
  );
}

function MessageFacts({ message }: { message: Message }) {
  const trouble = TROUBLED[message.status ?? ''];
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
      `ended by ${message.finishReason}`,
  ].filter((fact): fact is string => typeof fact === 'string' && fact !== '');
  return (
    <Group gap={6}>
      {trouble !== undefined && <Badge color="orange">{trouble}</Badge>}
      <Tooltip label={exactTime(message.timestamp)}>
        <Text size="xs" c="dimmed">
          {facts.join(' · ')}
        </Text>
      </Tooltip>
    </Group>
  );
}

function Unanswered({ about }: { about: NonNullable<Message['unanswered']> }) {
  const reason = FAILURES[about.failure ?? ''];
  return (
    <Group gap={6}>
      <Badge color="orange">{TROUBLED[about.status] ?? 'no answer'}</Badge>
      <Text size="xs" c="dimmed">
        No answer{reason === undefined ? '' : `: ${reason}`} · {seconds(about.responseTime)}
      </Text>
    </Group>
  );
}
