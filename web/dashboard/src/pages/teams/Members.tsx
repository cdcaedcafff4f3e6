// Members of a team and their specializations.
import { ActionIcon, Alert, Group, Select, Stack, Text, Textarea } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { listQuery } from '../../api/resources';
import { useSession } from '../../api/session';
import type { AgentItem } from '../../api/types';
import { Card } from '../../components/Card';
import { StatusBadge } from '../../components/formats';
import { AgentAvatar } from '../agents/AgentAvatar';
import type { TeamSectionProps } from './TeamPage';

const MEMBERS_MAX = 100;

export function Members({ form, isReadOnly, fieldError }: TeamSectionProps) {
  const { members } = form.fields;
  const agents = useQuery(listQuery(useSession().organization.id, 'agents'));
  const agentOf = (slug: string) => agents.data?.find((agent) => agent.slug === slug);
  const free = agents.data?.filter((agent) => !members.some((member) => member.agent === agent.slug)) ?? [];
  const specialize = (slug: string, specialization: string) =>
    form.set({ members: members.map((member) => (member.agent === slug ? { ...member, specialization } : member)) });
  return (
    <Card title="Members" about="Describe what visitors ask each member for. Clear specializations improve routing.">
      {members.length === 0 && (
        <Alert variant="light" color="gray">
          {form.fields.defaultAgent === null
            ? 'Nobody is in the team yet. Add a member, or choose a default agent that answers everything.'
            : 'Nobody is in the team yet. Without members, the default agent answers everything.'}
        </Alert>
      )}
      <Stack gap={0} component="ul" className="plain-list" aria-label="Members">
        {members.map((member, index) => (
          <MemberRow
            key={member.agent}
            slug={member.agent}
            agent={agentOf(member.agent)}
            specialization={member.specialization ?? ''}
            error={fieldError(`members[${index}].agent`) ?? fieldError(`members[${index}].specialization`)}
            isReadOnly={isReadOnly}
            onSpecialize={(text) => specialize(member.agent, text)}
            onRemove={() => form.set({ members: members.filter((other) => other.agent !== member.agent) })}
          />
        ))}
      </Stack>
      {!isReadOnly && (
        <Select
          aria-label="Add a member"
          placeholder={free.length === 0 ? 'All agents are members' : 'Add an agent…'}
          disabled={free.length === 0 || members.length >= MEMBERS_MAX}
          searchable
          value={null}
          data={free.map((agent) => ({ value: agent.slug, label: agent.name }))}
          onChange={(slug) => slug !== null && form.set({ members: [...members, { agent: slug, specialization: '' }] })}
        />
      )}
    </Card>
  );
}

interface MemberRowProps {
  slug: string;
  agent: AgentItem | undefined;
  specialization: string;
  error: string | undefined;
  isReadOnly: boolean;
  onSpecialize: (text: string) => void;
  onRemove: () => void;
}

function MemberRow({ slug, agent, specialization, error, isReadOnly, onSpecialize, onRemove }: MemberRowProps) {
  return (
    <Group component="li" align="flex-start" wrap="nowrap" py="sm" gap="sm" className="list-row">
      {agent !== undefined && <AgentAvatar agent={agent} />}
      <div className="grow">
        <Group gap="xs" mb={6}>
          {agent === undefined ? (
            <Text size="sm">{slug}</Text>
          ) : (
            <Link to="/agents/$id" params={{ id: agent.id }} className="row-link">
              {agent.name}
            </Link>
          )}
          {agent !== undefined && !(agent.status === 'active' && agent.public) && (
            <>
              <StatusBadge status={agent.status} isPublic={agent.public} />
              <Text size="xs" c="dimmed">
                gets no messages until it is published and public
              </Text>
            </>
          )}
        </Group>
        <Textarea
          aria-label={`Specialization of ${agent?.name ?? slug}`}
          placeholder="Topics it handles: orders, delivery, returns…"
          autosize
          minRows={1}
          maxRows={5}
          value={specialization}
          error={error}
          onChange={(event) => onSpecialize(event.currentTarget.value)}
        />
      </div>
      {!isReadOnly && (
        <ActionIcon variant="subtle" color="gray" aria-label={`Remove ${agent?.name ?? slug}`} onClick={onRemove}>
          <IconTrash size={16} aria-hidden />
        </ActionIcon>
      )}
    </Group>
  );
}
