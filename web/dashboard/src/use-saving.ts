// Saves changed fields of a form onto the version that was read.
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { mistakeIn, Problem } from './api/client';
import { change, type Kind, oneQuery } from './api/things';
import { patchBetween, withPatch } from './merge';
import type { Draft } from './use-draft';

type Versioned = object & { version?: string };

interface Sending<T> {
  patch: object;
  version: string | undefined;
  /** Edited fields at the time of sending. */
  fields: T;
}

export interface Clash<T> {
  theirs: T & Versioned;
  /** Changes of others since the form was read. */
  patch: Record<string, unknown>;
}

export function useSaving<T extends object>(org: string, kind: Kind, id: string, form: Draft<T>) {
  const client = useQueryClient();
  const [clash, setClash] = useState<Clash<T>>();
  const key = oneQuery(org, kind, id).queryKey;
  // Concurrent saves of one form would conflict.
  const isBusy = useRef(false);
  const saving = useMutation({
    mutationFn: ({ patch, version }: Sending<T>) =>
      change(org, kind, id, patch, version) as unknown as Promise<T & Versioned>,
    onSettled: () => {
      isBusy.current = false;
    },
    onSuccess: async (saved, { fields }) => {
      form.settle(fields, saved);
      setClash(undefined);
      client.setQueryData(key, saved as never);
      notifications.show({ color: 'green', message: 'Saved. Changes take effect within two seconds.' });
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
  const send = (sending: Sending<T>) => {
    if (isBusy.current) return;
    isBusy.current = true;
    saving.mutate(sending);
  };
  return {
    save: () => send({ patch: form.patch, version: form.version, fields: form.fields }),
    isSaving: saving.isPending,
    // The sign-in dialog reports ended sessions.
    error: saving.error instanceof Problem && saving.error.status === 401 ? null : saving.error,
    forget: saving.reset,
    /** Returns the error of a field. */
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
      send({
        patch: form.patch,
        version: clash.theirs.version,
        fields: withPatch<T>(clash.theirs, form.patch),
      });
    },
  };
}
