// Reads server-sent events from a response; `EventSource` can send neither a body nor a token.

export interface ServerEvent {
  name: string;
  id: string;
  data: string;
}

/** The service sends something at least every 10 s; a connection that is silent for longer is dead. */
const SILENCE_MS = 25_000;

/** Yields events until the stream ends; throws if it breaks or falls silent. */
export async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await withinSilence(reader.read());
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const event = parse(part);
        if (event) yield event;
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function parse(part: string): ServerEvent | null {
  const event: ServerEvent = { name: "message", id: "", data: "" };
  for (const line of part.split("\n")) {
    const [, field, value] = /^(event|id|data): ?(.*)$/.exec(line) ?? [];
    if (field === "event") event.name = value ?? "";
    else if (field === "id") event.id = value ?? "";
    else if (field === "data") event.data += value ?? "";
  }
  return event.data ? event : null;
}

async function withinSilence<T>(reading: Promise<T>): Promise<T> {
  let timer = 0;
  const silence = new Promise<never>((_, reject) => {
    timer = window.setTimeout(() => reject(new Error("the connection fell silent")), SILENCE_MS);
  });
  return Promise.race([reading, silence]).finally(() => clearTimeout(timer));
}
