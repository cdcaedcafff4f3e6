// Deletes an agent or a team after confirmation and returns to the list.
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useSession } from '../api/session';
import { remove } from '../api/things';
import { Confirm } from './Confirm';

interface DeleteThingProps {
  kind: 'agents' | 'teams';
  thing: { id: string; name: string };
  /** Label of the delete button. */
  action: string;
  onClose: () => void;
  /** Consequences of the deletion. */
  children: ReactNode;
}

export function DeleteThing({ kind, thing, action, onClose, children }: DeleteThingProps) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const navigate = useNavigate();
  const gone = async () => {
    await remove(org, kind, thing.id);
    await navigate({ to: `/${kind}`, ignoreBlocker: true });
    await client.invalidateQueries({ queryKey: [org, kind, 'list'] });
  };
  return (
    <Confirm title={`Delete ${thing.name}?`} action={action} onConfirm={gone} onClose={onClose}>
      {children}
    </Confirm>
  );
}
