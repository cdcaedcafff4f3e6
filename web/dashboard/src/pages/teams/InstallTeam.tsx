// Calls of a team. Pages use agents: the widget has one appearance, which a team does not.
import { Alert, Anchor, Stack } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import type { Team } from '../../api/types';
import { apiSnippets } from '../../components/api-snippets';
import { Card } from '../../components/Card';
import { Snippets } from '../../components/Snippets';

export function InstallTeam({ team }: { team: Team }) {
  const isReachable = team.status === 'active' && team.public;
  return (
    <Stack>
      <Card
        title="Call it from a server"
        about="A team answers through the API. The widget shows a single agent: install it on the page of that agent."
        actions={
          <Anchor component={Link} to="/settings/keys" size="sm">
            API keys
          </Anchor>
        }
      >
        {!isReachable && (
          <Alert variant="light" color="yellow" icon={<IconAlertTriangle aria-hidden />}>
            {team.status === 'active' ? 'The team is private' : 'The team is not published'}: clients get “not found”.
          </Alert>
        )}
        <Snippets label="Language" snippets={apiSnippets('teams', team.id)} />
      </Card>
    </Stack>
  );
}
