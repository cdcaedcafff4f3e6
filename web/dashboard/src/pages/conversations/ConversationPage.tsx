// Page of a conversation: live transcript and visitor.
import { Anchor, Button, Group, Paper, Stack, Text } from '@mantine/core';
import { IconMessages } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useCallback } from 'react';
import { conversationQuery, isGone } from '../../api/conversations';
import { useMay, useSession } from '../../api/session';
import type { Conversation } from '../../api/types';
import { EmptyState } from '../../components/EmptyState';
import { ErrorAlert } from '../../components/ErrorAlert';
import { LoadingRows, Page } from '../../components/Page';
import { RIGHTS } from '../../rights';
import { ConversationColumn } from './ConversationColumn';
import { DeleteConversation } from './DeleteConversation';
import { Details } from './Details';
import { LiveReply } from './LiveReply';
import { MessageView } from './MessageView';
import { VisitorErasure } from './VisitorErasure';
import { visitorOf } from './visitor';

const route = getRouteApi('/inside/conversations/$id');

export function ConversationPage() {
  const { id } = route.useParams();
  const search = route.useSearch();
  const org = useSession().organization.id;
  const navigate = useNavigate();
  const mayAct = useMay(RIGHTS.actOnConversations);
  const conversation = useQuery(conversationQuery(useQueryClient(), org, id));
  const { refetch } = conversation;
  const leave = () => void navigate({ to: '/conversations', search: {} });
  const readAgain = useCallback(() => void refetch(), [refetch]);
  if (conversation.isPending) return <LoadingRows rows={6} />;
  const gone = isGone(conversation.error);
  if (conversation.data === undefined) {
    if (!gone) return <ErrorAlert error={conversation.error} retry={() => void conversation.refetch()} />;
    return (
      <Page title="Conversation">
        <Gone />
      </Page>
    );
  }
  const visitor = visitorOf(conversation.data);
  const trail = (
    <Anchor component={Link} to="/conversations" search={search as never} size="sm">
      All conversations
    </Anchor>
  );
  const actions = (
    <Group gap="xs">
      <VisitorErasure
        org={org}
        visitor={{
          ...(visitor.id !== undefined && { visitorId: visitor.id }),
          ...(visitor.email !== undefined && { visitorEmail: visitor.email }),
        }}
        onErased={leave}
      />
      {!gone && <DeleteConversation org={org} id={id} onDeleted={leave} />}
    </Group>
  );
  // Keeps the erasure receipt open although the conversation is deleted.
  return (
    <Page title={gone ? 'Conversation' : visitor.label} width={1600} trail={trail} actions={mayAct && actions}>
      <div className="inbox">
        <div className="only-beside">
          <ConversationColumn search={search} selected={id} onClear={leave} />
        </div>
        {gone ? (
          <Gone />
        ) : (
          <div>
            {conversation.isError && <ErrorAlert error={conversation.error} />}
            <div className="transcript">
              <Transcript org={org} conversation={conversation.data} onReplied={readAgain} />
              <aside aria-label="About this conversation">
                <Details conversation={conversation.data} />
              </aside>
            </div>
          </div>
        )}
      </div>
    </Page>
  );
}

interface TranscriptProps {
  org: string;
  conversation: Conversation;
  onReplied: () => void;
}

function Transcript({ org, conversation, onReplied }: TranscriptProps) {
  const { id, messages, activeMessageId, teamId } = conversation;
  return (
    <Paper className="panel" p={{ base: 'md', xs: 'lg' }} component="section" aria-label="Transcript">
      <Stack gap="md">
        {messages.length === 0 && activeMessageId === null && <Text c="dimmed">No messages yet.</Text>}
        {messages.map((message) => (
          <MessageView key={message.id} message={message} withAgent={teamId !== null} />
        ))}
        {activeMessageId !== null && (
          <LiveReply
            key={activeMessageId}
            org={org}
            conversation={id}
            message={activeMessageId}
            withAgent={teamId !== null}
            onEnd={onReplied}
          />
        )}
      </Stack>
    </Paper>
  );
}

/** Shown when a conversation is deleted while it is open. */
function Gone() {
  return (
    <EmptyState
      icon={IconMessages}
      title="This conversation was deleted"
      action={
        <Button component={Link} to="/conversations">
          Go to conversations
        </Button>
      }
    >
      It was deleted, or its visitor was erased.
    </EmptyState>
  );
}
