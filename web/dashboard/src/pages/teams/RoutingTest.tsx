// Routing test: shows which member would answer a message, with scores and reason. It uses the
// form; no conversation is created and no agent answers.
import { Alert, Badge, Button, Checkbox, Group, Paper, Progress, Stack, Text, Textarea } from '@mantine/core';
import { IconInfoCircle } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, type KeyboardEvent, useState } from 'react';
import { HISTORY_MAX, type HistoryMessage, type RoutingVerdict, testRouting } from '../../api/playground';
import { useSession } from '../../api/session';
import type { Team } from '../../api/types';
import { ErrorAlert } from '../../components/ErrorAlert';
import { took } from '../../components/formats';

interface RoutingResult {
  message: string;
  verdict: RoutingVerdict;
  /** History before the message. */
  history: HistoryMessage[];
}

const STAGES: Record<string, string> = {
  continuity: 'by continuity',
  words: 'by words',
  meaning: 'by meaning',
  model: 'by a model',
  strategy: 'by strategy',
};

interface RoutingTestProps {
  team: Team;
  patch: Record<string, unknown>;
  mayTry: boolean;
}

export function RoutingTest({ team, patch, mayTry }: RoutingTestProps) {
  const org = useSession().organization.id;
  const [message, setMessage] = useState('');
  const [isContinued, setContinued] = useState(false);
  const [result, setResult] = useState<RoutingResult>();
  const trying = useMutation({
    mutationFn: async ({
      message,
      history,
    }: {
      message: string;
      history: HistoryMessage[];
    }): Promise<RoutingResult> => {
      const verdict = await testRouting(org, team.id, { message, history, draft: patch });
      return { message, history, verdict };
    },
    onSuccess: setResult,
  });
  if (!mayTry) {
    return (
      <Alert variant="light" color="indigo" icon={<IconInfoCircle />} title="You need the editor role to test">
        Ask an owner for the editor role.
      </Alert>
    );
  }
  const send = () => {
    if (message.trim() === '' || trying.isPending) return;
    const history = isContinued && result !== undefined ? withVerdict(result) : [];
    trying.mutate({ message: message.trim(), history });
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    send();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        See which agent would answer, and why. Uses the form, saved or not. No agent answers and nothing is stored.
      </Text>
      <form onSubmit={onSubmit}>
        <Stack gap="xs">
          <Textarea
            label="Message"
            placeholder="What would a visitor ask?"
            autosize
            minRows={2}
            maxRows={6}
            value={message}
            onChange={(event) => setMessage(event.currentTarget.value)}
            onKeyDown={onKeyDown}
          />
          {result !== undefined && result.verdict.agent !== null && (
            <Checkbox
              size="xs"
              label="Continue from the previous message"
              checked={isContinued}
              onChange={(event) => setContinued(event.currentTarget.checked)}
            />
          )}
          <Group>
            <Button type="submit" loading={trying.isPending} disabled={message.trim() === ''}>
              Who would answer?
            </Button>
          </Group>
        </Stack>
      </form>
      {trying.isError && <ErrorAlert error={trying.error} />}
      {result !== undefined && <Outcome result={result} />}
    </Stack>
  );
}

/** History for the message after the tested one. */
function withVerdict({ message, verdict, history }: RoutingResult): HistoryMessage[] {
  const agentId = verdict.agent?.id ?? '';
  const exchange: HistoryMessage[] = [
    { role: 'user', content: message },
    { role: 'assistant', content: '', agentId },
  ];
  return [...history, ...exchange].slice(-HISTORY_MAX);
}

function Outcome({ result: { message, verdict } }: { result: RoutingResult }) {
  const facts = [
    verdict.stage !== null && (STAGES[verdict.stage] ?? verdict.stage),
    verdict.tookMs !== null && took(verdict.tookMs),
  ].filter((fact): fact is string => typeof fact === 'string');
  return (
    <Paper withBorder p="sm" radius="md" role="status" aria-label="Who would answer">
      <Stack gap="sm">
        <Text size="sm" c="dimmed" className="text-block">
          “{message}”
        </Text>
        <div>
          <Text fw={650} data-testid="chosen-agent">
            {verdict.agent === null ? 'Nobody' : (verdict.agent.name ?? verdict.agent.id)}
          </Text>
          <Text size="sm">{verdict.reason}</Text>
          {facts.length > 0 && (
            <Text size="xs" c="dimmed">
              {facts.join(' · ')}
            </Text>
          )}
        </div>
        <Stack gap="xs" component="ul" className="plain-list" aria-label="Scores">
          {verdict.members.map((member) => (
            <Score key={member.agent.id} member={member} isChosen={member.agent.id === verdict.agent?.id} />
          ))}
        </Stack>
      </Stack>
    </Paper>
  );
}

function Score({ member, isChosen }: { member: RoutingVerdict['members'][number]; isChosen: boolean }) {
  const name = member.agent.name ?? member.agent.id;
  const percent = member.permille === null ? undefined : member.permille / 10;
  return (
    <li>
      <Group justify="space-between" gap="xs" mb={4}>
        <Text size="sm" fw={isChosen ? 650 : 400}>
          {name}
        </Text>
        {member.canAnswer ? (
          <Text size="xs" c="dimmed" data-testid="score">
            {percent === undefined ? 'not scored' : `${percent.toFixed(1)} %`}
          </Text>
        ) : (
          <Badge color="gray" size="sm">
            unavailable
          </Badge>
        )}
      </Group>
      {percent !== undefined && (
        <Progress value={percent} color={isChosen ? 'indigo' : 'gray'} aria-label={`Score of ${name}`} />
      )}
    </li>
  );
}
