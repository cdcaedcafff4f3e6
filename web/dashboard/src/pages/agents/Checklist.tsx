// Steps from a new agent to its first conversation, shown until all are done.
import { Button, Group, Paper, Progress, Text, Title } from '@mantine/core';
import { IconCircle, IconCircleCheckFilled } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { conversationsQuery } from '../../api/conversations';
import { useSession } from '../../api/session';
import type { Agent } from '../../api/types';
import { widgetPagesQuery } from '../../api/widget-pages';
import type { AgentTab } from '../../router';
import { isTried } from './tried';

interface Step {
  label: string;
  isDone: boolean;
  /** Place of the step; without one there is nothing to open. */
  open?: () => void;
}

/** Reads whether the agent is used; its page waits for it, because the list moves what lies below. */
export function useUsage(agentId: string, isWanted: boolean) {
  const org = useSession().organization.id;
  const conversations = useInfiniteQuery({ ...conversationsQuery(org, { agent: agentId }), enabled: isWanted });
  const pages = useQuery({ ...widgetPagesQuery(org, agentId), enabled: isWanted });
  return {
    isLoading: conversations.isLoading || pages.isLoading,
    hasConversation: conversations.data?.pages.some((page) => page.items.length > 0),
    isInstalled: pages.data && pages.data.length > 0,
  };
}

export function Checklist({ agent, onOpen }: { agent: Agent; onOpen: (tab: AgentTab) => void }) {
  const { hasConversation, isInstalled } = useUsage(agent.id, true);
  if (hasConversation === undefined || isInstalled === undefined) return null;
  const isLive = agent.status === 'active';
  const steps: Step[] = [
    { label: 'Name it', isDone: true },
    { label: 'Instruct it', isDone: agent.instructions.trim() !== '', open: () => onOpen('instructions') },
    {
      label: 'Try it',
      isDone: isTried(agent.id) || hasConversation,
      open: () => document.querySelector<HTMLElement>('#try textarea')?.focus(),
    },
    { label: 'Publish it', isDone: isLive },
    { label: 'Install it', isDone: isInstalled || hasConversation, open: () => onOpen('install') },
    { label: 'First conversation', isDone: hasConversation },
  ];
  const done = steps.filter(({ isDone }) => isDone).length;
  if (done === steps.length) return null;
  return (
    <Paper className="panel" p="md" component="section" aria-labelledby="steps">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h3" id="steps">
          From new to live
        </Title>
        <Text size="sm" c="dimmed">
          {done} of {steps.length}
        </Text>
      </Group>
      <Progress value={(done / steps.length) * 100} size="sm" aria-label="Steps done" />
      <Group component="ol" className="plain-list" gap="xs" mt="sm">
        {steps.map(({ label, isDone, open }) => (
          <li key={label}>
            <StepMark label={label} isDone={isDone} open={isDone ? undefined : open} />
          </li>
        ))}
      </Group>
    </Paper>
  );
}

function StepMark({ label, isDone, open }: { label: string; isDone: boolean; open: (() => void) | undefined }) {
  const icon = isDone ? (
    <IconCircleCheckFilled size={16} color="var(--mantine-color-green-7)" aria-hidden />
  ) : (
    <IconCircle size={16} aria-hidden />
  );
  const text = (
    <>
      {label}
      {isDone && <span className="visually-hidden"> (done)</span>}
    </>
  );
  if (open !== undefined) {
    return (
      <Button variant="subtle" size="compact-sm" leftSection={icon} onClick={open}>
        {text}
      </Button>
    );
  }
  return (
    <Group gap={6} px="xs" wrap="nowrap">
      {icon}
      <Text size="sm" c="dimmed" component="span">
        {text}
      </Text>
    </Group>
  );
}
