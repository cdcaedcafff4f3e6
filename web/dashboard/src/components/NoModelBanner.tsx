// Notice on every page while no language model is configured and the built-in demo replies.
import { Alert, Anchor } from '@mantine/core';
import { IconPlugConnected } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { listQuery } from '../api/resources';
import { useMay, useSession } from '../api/session';
import { RIGHTS } from '../rights';

export function NoModelBanner() {
  const { organization } = useSession();
  const mayConfigure = useMay(RIGHTS.configure);
  const lacksModel = organization.hasModel === false;
  // A provider that was just added counts at once; the session is read again only later.
  const providers = useQuery({ ...listQuery(organization.id, 'providers'), enabled: false });
  if (!lacksModel || (providers.data ?? []).length > 0) return null;
  return (
    <Alert
      color="yellow"
      variant="light"
      mb="lg"
      icon={<IconPlugConnected size={18} aria-hidden />}
      title="No language model is connected"
    >
      Visitors get replies of the built-in demo.{' '}
      {mayConfigure && (
        <Anchor component={Link} to="/settings/providers" inherit>
          Add a provider
        </Anchor>
      )}
    </Alert>
  );
}
