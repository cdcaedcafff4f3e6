// Deletes a provider after confirmation and a while in which it can be undone, because its key cannot be restored.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { listQuery, remove } from '../../api/resources';
import { useSession } from '../../api/session';
import type { Provider } from '../../api/types';
import { Confirm } from '../../components/Confirm';
import { Dialog } from '../../components/Dialog';
import { notifyError } from '../../components/ErrorAlert';
import { StillInUse } from '../../components/RemovalError';
import { doAfter } from '../../components/undo';

/** Time for which a deletion can be undone, in milliseconds. */
const UNDO_MS = 10_000;

interface DeleteProviderProps {
  provider: Provider;
  onClose: () => void;
  onDeleted: () => void;
}

export function DeleteProvider({ provider, onClose, onDeleted }: DeleteProviderProps) {
  const org = useSession().organization.id;
  const client = useQueryClient();
  const agents = useQuery(listQuery(org, 'agents')).data ?? [];
  const users = agents.filter(({ provider: first, fallbackProvider }) =>
    [first, fallbackProvider].includes(provider.slug),
  );
  if (users.length > 0) {
    return (
      <Dialog title={`Delete ${provider.slug}?`} onClose={onClose}>
        <StillInUse users={users.map(({ id, slug }) => ({ kind: 'agent', id, slug }))} />
      </Dialog>
    );
  }
  const { queryKey } = listQuery(org, 'providers');
  const reread = () => client.invalidateQueries({ queryKey: [org, 'providers'] });
  const gone = async () => {
    client.setQueryData(queryKey, (list) => list?.filter(({ id }) => id !== provider.id));
    const act = () => remove(org, 'providers', provider.id).catch(notifyError).then(reread);
    doAfter(`${provider.slug} will be deleted.`, UNDO_MS, act, reread);
    onDeleted();
  };
  return (
    <Confirm title={`Delete ${provider.slug}?`} action="Delete provider" onConfirm={gone} onClose={onClose}>
      Its API key is deleted with it. You can undo this for {UNDO_MS / 1000} seconds.
    </Confirm>
  );
}
