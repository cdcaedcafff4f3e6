// Deletes an agent or a team after confirmation and returns to the list.
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { remove } from '../api/resources';
import { useSession } from '../api/session';
import { Confirm } from './Confirm';

interface DeleteResourceProps {
  kind: 'agents' | 'teams';
  resource: { id: string; name: string };
  /** Label of the delete button. */
  action: string;
  onClose: () => void;
  /** Consequences of the deletion. */
  children: ReactNode;
}

export function DeleteResource({ kind, resource, action, onClose, children }: DeleteResourceProps) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const navigate = useNavigate();
  const gone = async () => {
    await remove(org, kind, resource.id);
    await navigate({ to: `/${kind}`, ignoreBlocker: true });
    await client.invalidateQueries({ queryKey: [org, kind, 'list'] });
  };
  return (
    <Confirm title={`Delete ${resource.name}?`} action={action} onConfirm={gone} onClose={onClose}>
      {children}
    </Confirm>
  );
}
