// Deletes a conversation after confirmation.
import { Button } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { conversationQuery, deleteConversation } from '../../api/conversations';
import { Confirm } from '../../components/Confirm';

interface DeleteConversationProps {
  org: string;
  id: string;
  onDeleted: () => void;
}

export function DeleteConversation({ org, id, onDeleted }: DeleteConversationProps) {
  const client = useQueryClient();
  const [isAsked, setAsked] = useState(false);
  const confirmed = async () => {
    await deleteConversation(org, id);
    onDeleted();
    client.removeQueries({ queryKey: conversationQuery(client, org, id).queryKey });
    await client.invalidateQueries({ queryKey: [org, 'conversations', 'list'] });
  };
  return (
    <>
      <Button variant="default" leftSection={<IconTrash size={16} aria-hidden />} onClick={() => setAsked(true)}>
        Delete
      </Button>
      {isAsked && (
        <Confirm
          title="Delete this conversation?"
          action="Delete conversation"
          onConfirm={confirmed}
          onClose={() => setAsked(false)}
        >
          Its messages, rating and feedback are deleted, and a running reply is stopped. This cannot be undone. If the
          visitor writes again, a new conversation starts.
        </Confirm>
      )}
    </>
  );
}
