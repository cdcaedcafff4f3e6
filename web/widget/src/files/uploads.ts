// Requests for files: uploads with progress, and downloads.

import type { Attachment } from "../conversation.ts";
import { h } from "../dom.ts";
import type { Service } from "../service.ts";
import { fields } from "../settings.ts";
import { typeOf } from "./types.ts";

/** Services that the widget provides to this part. */
export interface FilesHost {
  service: Service;
  /** Returns the session of the conversation. */
  session(): string;
  /** Announces a success to screen readers. */
  announce(text: string): void;
}

/** An upload without progress for this long has failed. */
const SILENCE_MS = 60_000;
const SAVE_MS = 60_000;

/** Uploads a file; throws the `Refusal` of the service, or another error without a response. */
export async function upload(
  { service, session }: FilesHost,
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<Attachment> {
  const type = typeOf(file);
  const response = await service.authorized((authorization) => {
    const form = new FormData();
    // The service reads the session before the file.
    form.append("sessionId", session());
    form.append("file", new File([file], file.name, { type }));
    return post(`${service.base}/api/public/agents/${service.agent}/files`, authorization, form, onProgress, signal);
  });
  const { fileId, name, mimeType, bytes } = fields(await response.json());
  return { fileId: String(fileId), name: String(name), mimeType: String(mimeType), bytes: Number(bytes) };
}

/** Sends a form; unlike fetch, XMLHttpRequest reports how much was sent. */
function post(url: string, authorization: string, form: FormData, onProgress: (share: number) => void, signal: AbortSignal): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    let timer = 0;
    const wait = () => {
      clearTimeout(timer);
      timer = window.setTimeout(stop, SILENCE_MS);
    };
    request.open("POST", url);
    request.setRequestHeader("Authorization", authorization);
    request.upload.onprogress = ({ loaded, total }) => {
      wait();
      onProgress(total > 0 ? loaded / total : 0);
    };
    request.onloadend = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      if (request.status === 0) reject(new Error("the service cannot be reached"));
      else resolve(new Response(request.responseText, { status: request.status }));
    };
    if (signal.aborted) return reject(new Error("cancelled"));
    signal.addEventListener("abort", stop);
    request.send(form);
    wait();
  });
}

export async function download({ service }: FilesHost, fileId: string): Promise<Blob> {
  return (await service.ask(`/api/public/files/${fileId}`)).blob();
}

/** Saves a file. Its type is dropped, so that no browser ever displays it as a page. */
export function save(file: Blob, name: string): void {
  const href = URL.createObjectURL(new Blob([file], { type: "application/octet-stream" }));
  h("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), SAVE_MS);
}
