// Files that are uploaded for the next message of the playground.
import { useEffect, useRef, useState } from 'react';
import { ATTACHMENTS_MAX, type Attachment, type FileSettings } from '../api/files';
import { typeLabel } from '../file-types';
import { explain } from './ErrorAlert';
import { fileSize } from './formats';

export interface Upload {
  id: number;
  name: string;
  bytes: number;
  /** Set once the upload is complete. */
  stored?: Attachment;
  abort: AbortController;
}

export interface RejectedFile {
  name: string;
  reason: string;
}

export interface Uploads {
  uploads: Upload[];
  rejected: RejectedFile[];
  settings: FileSettings;
  isBusy: boolean;
  add: (files: File[]) => void;
  /** Removes a file; a running upload is canceled. */
  remove: (id: number) => void;
  forgetRejected: () => void;
  /** Empties the list and returns the stored files. */
  take: () => Attachment[];
}

type Send = (file: File, signal: AbortSignal) => Promise<Attachment>;

export function useUploads(settings: FileSettings, send: Send): Uploads {
  const [uploads, setUploads] = useState<Upload[]>([]);
  const [rejected, setRejected] = useState<RejectedFile[]>([]);
  const begun = useRef(0);
  const running = useRef(new Set<AbortController>());
  useEffect(() => {
    const aborts = running.current;
    return () => {
      for (const abort of aborts) abort.abort();
    };
  }, []);

  const reject = (name: string, reason: string) => setRejected((before) => [...before, { name, reason }]);
  const drop = (id: number) => setUploads((before) => before.filter((upload) => upload.id !== id));
  const begin = async (file: File) => {
    begun.current += 1;
    const id = begun.current;
    const abort = new AbortController();
    running.current.add(abort);
    setUploads((before) => [...before, { id, name: file.name, bytes: file.size, abort }]);
    try {
      const stored = await send(file, abort.signal);
      if (!settings.types.includes(stored.mimeType)) {
        drop(id);
        reject(file.name, `The agent does not accept ${typeLabel(stored.mimeType)} files.`);
      } else setUploads((before) => before.map((upload) => (upload.id === id ? { ...upload, stored } : upload)));
    } catch (error) {
      drop(id);
      if (!abort.signal.aborted) reject(file.name, explain(error).advice);
    } finally {
      running.current.delete(abort);
    }
  };

  return {
    uploads,
    rejected,
    settings,
    isBusy: uploads.some(({ stored }) => stored === undefined),
    add: (files) => {
      setRejected([]);
      let room = ATTACHMENTS_MAX - uploads.length;
      for (const file of files) {
        if (file.size > settings.maxBytes)
          reject(file.name, `The file is larger than ${fileSize(settings.maxBytes)}, the limit of the agent.`);
        else if (room <= 0) reject(file.name, `A message has at most ${ATTACHMENTS_MAX} files.`);
        else {
          room -= 1;
          void begin(file);
        }
      }
    },
    remove: (id) => {
      uploads.find((upload) => upload.id === id)?.abort.abort();
      drop(id);
    },
    forgetRejected: () => setRejected([]),
    take: () => {
      setUploads([]);
      setRejected([]);
      return uploads.flatMap(({ stored }) => stored ?? []);
    },
  };
}
