// Saves changed fields of a form onto the version that was read.
import { useTimeout } from '@mantine/hooks';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { findFieldError, Problem } from './api/client';
import { change, oneQuery, type ResourceKind } from './api/resources';
import { patchBetween, withPatch } from './merge';
import type { Draft } from './use-draft';

/** Time for which the save bar confirms a save, in milliseconds. */
const CONFIRMED_MS = 5000;

type Versioned = object & { version?: string };

interface SaveRequest<T> {
  patch: object;
  version: string | undefined;
  /** Edited fields at the time of sending. */
  fields: T;
}

export interface SaveConflict<T> {
  theirs: T & Versioned;
  /** Changes of others since the form was read. */
  patch: Record<string, unknown>;
}

export type Saving = ReturnType<typeof useSaving>;

export function useSaving<T extends object>(org: string, kind: ResourceKind, id: string, form: Draft<T>) {
  const client = useQueryClient();
  const [conflict, setConflict] = useState<SaveConflict<T>>();
  const key = oneQuery(org, kind, id).queryKey;
  const [isSaved, setSaved] = useState(false);
  const confirmation = useTimeout(() => setSaved(false), CONFIRMED_MS);
  // Concurrent saves of one form would conflict.
  const isBusy = useRef(false);
  const saving = useMutation({
    mutationFn: ({ patch, version }: SaveRequest<T>) =>
      change(org, kind, id, patch, version) as unknown as Promise<T & Versioned>,
    onSettled: () => {
      isBusy.current = false;
    },
    onSuccess: async (saved, { fields }) => {
      form.settle(fields, saved);
      setConflict(undefined);
      client.setQueryData(key, saved as never);
      setSaved(true);
      confirmation.clear();
      confirmation.start();
      await client.invalidateQueries({ queryKey: [org] });
    },
    onError: async (error) => {
      const isStale = error instanceof Problem && error.code === 'CONFLICT' && error.details['version'] !== undefined;
      if (!isStale) return;
      const theirs = (await client.fetchQuery({ ...oneQuery(org, kind, id), staleTime: 0 })) as unknown as T &
        Versioned;
      setConflict({ theirs, patch: patchBetween(form.base, theirs) });
      saving.reset();
    },
  });
  const send = (sending: SaveRequest<T>, onDone?: () => void) => {
    if (isBusy.current) return;
    isBusy.current = true;
    setSaved(false);
    saving.mutate(sending, { onSuccess: () => onDone?.() });
  };
  return {
    save: () => send({ patch: form.patch, version: form.version, fields: form.fields }),
    /** Saves the form together with these fields. */
    saveWith: (changes: Partial<T>, onDone: () => void) => {
      form.set(changes);
      send(
        { patch: { ...form.patch, ...changes }, version: form.version, fields: { ...form.fields, ...changes } },
        onDone,
      );
    },
    isSaved,
    isSaving: saving.isPending,
    // The sign-in dialog reports ended sessions.
    error: saving.error instanceof Problem && saving.error.status === 401 ? null : saving.error,
    forget: saving.reset,
    /** Returns the error of a field. */
    fieldError: (path: string) => findFieldError(saving.error, path),
    conflict,
    closeConflict: () => setConflict(undefined),
    takeTheirs: () => {
      if (conflict !== undefined) form.adopt(conflict.theirs);
      setConflict(undefined);
    },
    keepMine: () => {
      if (conflict === undefined) return;
      form.rebase(conflict.theirs);
      send({
        patch: form.patch,
        version: conflict.theirs.version,
        fields: withPatch<T>(conflict.theirs, form.patch),
      });
    },
  };
}
