// List of conversations with filters in the URL; on wide screens the transcript lies beside it.
import { Group } from '@mantine/core';
import { IconMessages } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { listQuery } from '../../api/resources';
import { useMay, useSession } from '../../api/session';
import { EmptyState } from '../../components/EmptyState';
import { Page } from '../../components/Page';
import { RIGHTS } from '../../rights';
import type { ConversationSearch } from '../../router';
import { ConversationColumn } from './ConversationColumn';
import { ExportMenu } from './ExportMenu';
import { Filters } from './Filters';
import { filterOf } from './filter';
import { VisitorErasure } from './VisitorErasure';

const route = getRouteApi('/inside/conversations');

export function ConversationList() {
  const org = useSession().organization.id;
  const search = route.useSearch();
  const navigate = useNavigate();
  const mayAct = useMay(RIGHTS.actOnConversations);
  const agents = useQuery(listQuery(org, 'agents'));
  const teams = useQuery(listQuery(org, 'teams'));
  const clear = () => void navigate({ to: '/conversations', search: {} });
  return (
    <Page
      title="Conversations"
      about="Messages of visitors and replies of agents. The list updates automatically."
      width={1600}
      actions={
        mayAct && (
          <Group gap="xs">
            <ExportMenu org={org} filter={filterOf(search)} />
            <VisitorErasure org={org} />
          </Group>
        )
      }
    >
      <Filters
        search={search}
        agents={agents.data ?? []}
        teams={teams.data ?? []}
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
