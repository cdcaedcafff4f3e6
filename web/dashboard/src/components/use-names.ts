// Names for ids in the audit log, if the resource still exists and the user may read it.
import { useQuery } from '@tanstack/react-query';
import { listQuery } from '../api/resources';
import { useMay, useSession } from '../api/session';
import { usersQuery } from '../api/users';
import { RIGHTS } from '../rights';

/** Returns the name for an id, or nothing if the resource is gone. */
export type Names = (id: string) => string | undefined;

export function useNames(): Names {
  const { id: org, name } = useSession().organization;
  const maySeePeople = useMay(RIGHTS.manageUsers);
  const lists: ({ id: string; name: string }[] | undefined)[] = [
    useQuery(listQuery(org, 'agents')).data,
    useQuery(listQuery(org, 'teams')).data,
    useQuery(listQuery(org, 'keys')).data,
    useQuery({ ...usersQuery(org), enabled: maySeePeople }).data,
  ];
  const providers = useQuery(listQuery(org, 'providers')).data;
  const names = new Map<string, string>([[org, name]]);
  for (const resource of lists.flatMap((list) => list ?? [])) names.set(resource.id, resource.name);
  for (const provider of providers ?? []) names.set(provider.id, provider.slug);
  return (id) => names.get(id);
}
