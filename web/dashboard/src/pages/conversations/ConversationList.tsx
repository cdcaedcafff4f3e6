// List of conversations with filters in the URL; on wide screens the transcript lies beside it.
import { Group } from '@mantine/core';
import { IconMessages } from '@tabler/icons-react';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { exportPath } from '../../api/conversations';
import { useMay, useSession } from '../../api/session';
import { EmptyState } from '../../components/EmptyState';
import { ExportMenu } from '../../components/ExportMenu';
import { Page } from '../../components/Page';
import { RIGHTS } from '../../rights';
import type { ConversationSearch } from '../../router';
import { ConversationColumn } from './ConversationColumn';
import { Filters } from './Filters';
import { filterOf } from './filter';
import { VisitorErasure } from './VisitorErasure';

const route = getRouteApi('/inside/conversations');

export function ConversationList() {
  const org = useSession().organization.id;
  const search = route.useSearch();
  const navigate = useNavigate();
  const mayAct = useMay(RIGHTS.actOnConversations);
  const clear = () => void navigate({ to: '/conversations', search: {} });
  return (
    <Page
      title="Conversations"
      about="Messages of visitors and replies of agents. The list updates automatically."
      width={1600}
      actions={
        mayAct && (
          <Group gap="xs">
            <ExportMenu pathOf={(format) => exportPath(org, filterOf(search), format)} />
            <VisitorErasure org={org} />
          </Group>
        )
      }
    >
      <Filters
        search={search}
        onChange={(changes) =>
          void navigate({
            to: '/conversations',
            search: (before: ConversationSearch) => ({ ...before, ...changes }),
            replace: true,
          })
        }
        onClear={clear}
      />
      <div className="inbox">
        <ConversationColumn search={search} onClear={clear} />
        <div className="only-beside">
          <EmptyState icon={IconMessages} title="Choose a conversation">
            Its messages appear here.
          </EmptyState>
        </div>
      </div>
    </Page>
  );
}
