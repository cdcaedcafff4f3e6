// Saving a thing of a form: only what changed, and only onto the version that was read.
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { mistakeIn, Problem } from './api/client';
import { change, type Kind, oneQuery } from './api/things';
import { patchBetween } from './merge';
import type { Draft } from './use-draft';

type Versioned = object & { version?: string };

export interface Clash<T> {
  theirs: T & Versioned;
  /** What others changed since this form was read. */
  patch: Record<string, unknown>;
}

export function useSaving<T extends object>(org: string, kind: Kind, id: string, form: Draft<T>) {
  const client = useQueryClient();
  const [clash, setClash] = useState<Clash<T>>();
  const key = oneQuery(org, kind, id).queryKey;
  // Two saves at once would be two editors of one version.
  const isBusy = useRef(false);
  const saving = useMutation({
    mutationFn: (onto: { patch: object; version: string | undefined }) =>
      change(org, kind, id, onto.patch, onto.version) as unknown as Promise<T & Versioned>,
    onSettled: () => {
      isBusy.current = false;
    },
    onSuccess: async (saved) => {
      form.adopt(saved);
      setClash(undefined);
      client.setQueryData(key, saved as never);
      notifications.show({ color: 'green', message: 'Saved. It is live everywhere within two seconds.' });
      await client.invalidateQueries({ queryKey: [org] });
    },
    onError: async (error) => {
      const isStale = error instanceof Problem && error.code === 'CONFLICT' && error.details['version'] !== undefined;
      if (!isStale) return;
      const theirs = (await client.fetchQuery({ ...oneQuery(org, kind, id), staleTime: 0 })) as unknown as T &
        Versioned;
      setClash({ theirs, patch: patchBetween(form.base, theirs) });
      saving.reset();
    },
  });
  const send = (onto: { patch: object; version: string | undefined }) => {
    if (isBusy.current) return;
    isBusy.current = true;
    saving.mutate(onto);
  };
  return {
    save: () => send({ patch: form.patch, version: form.version }),
    isSaving: saving.isPending,
    error: saving.error,
    forget: saving.reset,
    /** What the service said of a field. */
    mistake: (path: string) => mistakeIn(saving.error, path),
    clash,
    closeClash: () => setClash(undefined),
    takeTheirs: () => {
      if (clash !== undefined) form.adopt(clash.theirs);
      setClash(undefined);
    },
    keepMine: () => {
      if (clash === undefined) return;
      form.rebase(clash.theirs);
      send({ patch: form.patch, version: clash.theirs.version });
    },
  };
}
