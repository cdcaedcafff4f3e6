// One message of a transcript, with how its reply came about.
import { Badge, Group, Stack, Text, Tooltip } from '@mantine/core';
import type { Message } from '../../api/types';
import { exactTime, seconds } from '../../components/Facts';
import { Markdown } from '../../components/Markdown';
import { ProductStrip } from '../../components/ProductStrip';

const TROUBLED: Record<string, string> = { incomplete: 'broke off', failed: 'failed', cancelled: 'was stopped' };

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
