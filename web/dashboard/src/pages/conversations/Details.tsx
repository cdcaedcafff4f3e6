// Visitor, lead, rating and metadata of a conversation.
import { Code, Paper, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { listQuery } from '../../api/resources';
import { useSession } from '../../api/session';
import type { Conversation } from '../../api/types';
import { exactTime, Stars } from '../../components/formats';
import { leadOf, leadValues } from '../leads/lead-values';
import { KNOWN_METADATA, visitorOf } from './visitor';

export function Details({ conversation }: { conversation: Conversation }) {
  const visitor = visitorOf(conversation);
  const { rating, feedback } = conversation.metadata;
  const others = Object.entries(conversation.metadata).filter(([field]) => !KNOWN_METADATA.has(field));
  return (
    <Stack>
      <Paper className="panel" p="md" component="section">
        <Title order={2} mb="sm">
          Visitor
        </Title>
        <Fact label="Name">{visitor.name}</Fact>
        <Fact label="Email">
          {visitor.email !== undefined && (
            <Link to="/conversations" search={{ visitor: visitor.email }} className="row-link">
              {visitor.email}
            </Link>
          )}
        </Fact>
        <Fact label="Visitor">
          {visitor.id !== undefined && (
            <Link to="/conversations" search={{ visitor: visitor.id }} className="row-link">
              {visitor.id}
            </Link>
          )}
        </Fact>
        <Fact label="Source">{visitor.source}</Fact>
        <Fact label="Network">{visitor.address}</Fact>
        {others.map(([field, value]) => (
          <Fact key={field} label={field}>
            {typeof value === 'string' ? value : JSON.stringify(value)}
          </Fact>
        ))}
      </Paper>
      <Lead conversation={conversation} />
      <Paper className="panel" p="md" component="section">
        <Title order={2} mb="sm">
          Rating
        </Title>
        <Stars rating={rating} />
        {typeof feedback === 'string' && feedback !== '' && (
          <Text size="sm" mt="xs" className="text-block">
            “{feedback}”
          </Text>
        )}
      </Paper>
      <Paper className="panel" p="md" component="section">
        <Title order={2} mb="sm">
          Conversation
        </Title>
        <Fact label="Agent">
          <Owner conversation={conversation} />
        </Fact>
        <Fact label="Started">{exactTime(conversation.createdAt)}</Fact>
        <Fact label="Messages">{conversation.messageCount}</Fact>
        <Fact label="Session">
          <Code className="break">{conversation.sessionId}</Code>
        </Fact>
        <Fact label="Id">
          <Code className="break">{conversation.id}</Code>
        </Fact>
      </Paper>
    </Stack>
  );
}

function Lead({ conversation: { agentId, metadata } }: { conversation: Conversation }) {
  const agents = useQuery(listQuery(useSession().organization.id, 'agents'));
  const lead = leadOf(metadata);
  if (lead === undefined) return null;
  const fields = agents.data?.find((agent) => agent.id === agentId)?.leadFields;
  return (
    <Paper className="panel" p="md" component="section">
      <Title order={2} mb="sm">
        Lead
      </Title>
      {leadValues(lead, fields).map(({ name, label, text }) => (
        <Fact key={name} label={label}>
          <span className="text-block">{text}</span>
        </Fact>
      ))}
      <Fact label="Agreed to">“{lead.consent}”</Fact>
      <Fact label="Received">{exactTime(lead.capturedAt)}</Fact>
    </Paper>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  if (children === undefined || children === false || children === '') return null;
  return (
    <div className="fact">
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text size="sm" component="div" className="break">
        {children}
      </Text>
    </div>
  );
}

function Owner({ conversation }: { conversation: Conversation }) {
  const org = useSession().organization.id;
  const agents = useQuery(listQuery(org, 'agents'));
  const teams = useQuery(listQuery(org, 'teams'));
  const team = teams.data?.find((team) => team.id === conversation.teamId);
  const agent = agents.data?.find((agent) => agent.id === conversation.agentId);
  if (team !== undefined) {
    return (
      <Link to="/teams/$id" params={{ id: team.id }} className="row-link">
        {team.name}
      </Link>
    );
  }
  if (agent !== undefined) {
    return (
      <Link to="/agents/$id" params={{ id: agent.id }} className="row-link">
        {agent.name}
      </Link>
    );
  }
  return agents.isPending || teams.isPending ? null : 'Deleted';
}
