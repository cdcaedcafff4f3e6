// Emits events of a widget to the page. Exceptions of listeners do not affect the widget.

export interface Events {
  ready: { agentId: string; name: string };
  open: { by: "visitor" | "page" | "timer" };
  close: { by: "visitor" | "page" };
  message: { role: "user" | "assistant"; text: string; id: string | null };
  rating: { rating: number };
  email: { email: string };
  lead: { values: Record<string, string> };
  offline: { message: string };
  error: { code: string; message: string };
  destroy: Record<string, never>;
}

export type EventName = keyof Events;
type Listener = (event: never) => void;

export class Emitter {
  private readonly listeners = new Map<EventName, Set<Listener>>();

  /** Calls `listener` with each event of that name until the returned function is called. */
  on<N extends EventName>(name: N, listener: (event: Events[N]) => void): () => void {
    const listeners = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  emit<N extends EventName>(name: N, event: Events[N]): void {
    for (const listener of this.listeners.get(name) ?? []) {
      try {
        (listener as (event: Events[N]) => void)(event);
      } catch (error) {
        reportError(error);
      }
    }
  }
}
