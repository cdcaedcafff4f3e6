// One conversation: its transcript, which grows while it is open, and who the visitor is.
import { Anchor, Loader, Paper, Stack, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { conversationQuery } from '../../api/conversations';
import { useSession } from '../../api/session';
import { Page, Waiting } from '../../components/Page';
import { Trouble } from '../../components/Trouble';
import { Details } from './Details';
import { MessageView } from './MessageView';
import { visitorOf } from './visitor';

const route = getRouteApi('/inside/conversations/$id');

export function ConversationPage() {
  const { id } = route.useParams();
  const org = useSession().organization.id;
  const conversation = useQuery(conversationQuery(useQueryClient(), org, id));
  if (conversation.isPending) return <Waiting rows={6} />;
  if (conversation.data === undefined)
    return <Trouble error={conversation.error} retry={() => void conversation.refetch()} />;
  const { messages, activeMessageId } = conversation.data;
  const trail = (
    <Anchor component={Link} to="/conversations" size="sm">
      All conversations
    </Anchor>
  );
  return (
    <Page title={visitorOf(conversation.data).label} width={1240} about={trail}>
      {conversation.isError && <Trouble error={conversation.error} />}
      <div className="split">
        <Paper className="panel" p={{ base: 'md', xs: 'lg' }} component="section" aria-label="Transcript">
          <Stack gap="md">
            {messages.length === 0 && activeMessageId === null && <Text c="dimmed">Nothing was said yet.</Text>}
            {messages.map((message) => (
              <MessageView key={message.id} message={message} withAgent={conversation.data.teamId !== null} />
            ))}
            {activeMessageId !== null && (
              <div className="said" data-role="assistant">
                <Loader type="dots" size="sm" aria-label="The agent is answering" />
              </div>
            )}
          </Stack>
        </Paper>
        <aside aria-label="About this conversation">
          <Details conversation={conversation.data} />
        </aside>
      </div>
    </Page>
  );
}
