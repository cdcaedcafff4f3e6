// Timeline, routing decision and truncation of one reply.
import { Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { listQuery } from '../../api/resources';
import { useSession } from '../../api/session';
import type { Message } from '../../api/types';
import { seconds, took } from '../../components/formats';

const STEPS: Record<string, string> = {
  accepted: 'Message accepted',
  routed: 'Agent chosen',
  queued: 'Queued',
  claimed: 'Claimed by a worker',
  asked: 'Model called',
  firstText: 'First token',
  done: 'Reply finished',
};

const STAGES: Record<string, string> = {
  continuity: 'continuity',
  words: 'words',
  meaning: 'meaning',
  model: 'a model',
  strategy: 'the strategy',
};

export function ReplyTimeline({ message }: { message: Message }) {
  const steps = [...(message.timeline ?? [])].sort((left, right) => left.ms - right.ms);
  if (steps.length === 0) return null;
  const whole = Math.max(1, steps.at(-1)?.ms ?? 1);
  return (
    <details className="explained">
      <summary>Reply timeline</summary>
      <Table aria-label="Reply timeline" className="timeline">
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Step</Table.Th>
            <Table.Th scope="col">After</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {steps.map(({ step, ms }) => (
            <Table.Tr key={step}>
              <Table.Td>{STEPS[step] ?? step}</Table.Td>
              <Table.Td>
                <span className="timeline-bar" aria-hidden>
                  <span style={{ width: `${(100 * ms) / whole}%` }} />
                </span>
                {seconds(ms)}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {message.routing && <RoutingDecision routing={message.routing} />}
      {message.leftOut && (
        <Text size="sm" mt="xs">
          {message.leftOut.messages} older messages exceeded the context window; a summary replaced{' '}
          {message.leftOut.summarized} of them.
        </Text>
      )}
      {message.summary && (
        <Text size="sm" mt="xs" className="text-block">
          Summary: {message.summary}
        </Text>
      )}
    </details>
  );
}

function RoutingDecision({ routing }: { routing: NonNullable<Message['routing']> }) {
  const agents = useQuery(listQuery(useSession().organization.id, 'agents'));
  const nameOf = (id: string) => agents.data?.find((agent) => agent.id === id)?.name ?? 'Deleted agent';
  return (
    <Text size="sm" mt="xs" component="div">
      Decided by {STAGES[routing.stage] ?? routing.stage}, in {took(routing.tookMs)}
      {routing.scores.length > 0 && (
        <ul className="scores">
          {routing.scores.map(({ agentId, permille }) => (
            <li key={agentId}>
              {nameOf(agentId)}: {(permille / 10).toFixed(1)} %
            </li>
          ))}
        </ul>
      )}
    </Text>
  );
}
