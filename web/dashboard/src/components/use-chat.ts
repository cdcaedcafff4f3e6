// A chat as a visitor has it, with what a visitor does not see: times, tokens, tools, and why an agent was chosen.
import { useCallback, useEffect, useRef, useState } from 'react';
import { type ChatEvent, cancel, chat } from '../api/chat';
import type { UiSpec } from '../api/types';

export interface Turn {
  id: string;
  question: string;
  text: string;
  state: 'waiting' | 'running' | 'done' | 'failed';
  error?: unknown;
  agentName?: string;
  routingReason?: string | null;
  model?: string | null;
  finishReason?: string | null;
  status?: string;
  usage?: { promptTokens?: number; completionTokens?: number } | null;
  firstTokenMs?: number;
  totalMs?: number;
  tools: { name: string; status: string }[];
  uiSpec?: UiSpec;
}

interface Running {
  abort: AbortController;
  messageId?: string;
  bearer: string;
}

export interface Chat {
  turns: Turn[];
  isRunning: boolean;
  send: (question: string) => Promise<void>;
  stop: () => void;
  restart: () => void;
}

/** Chats with `agents/{id}` or `teams/{id}`; `bearer` gives what opens it, asked for each message. */
export function useChat(target: string, bearer: () => Promise<string>): Chat {
  const [turns, setTurns] = useState<Turn[]>([]);
  const session = useRef(crypto.randomUUID());
  const running = useRef<Running | undefined>(undefined);
  const [isRunning, setRunning] = useState(false);
  useEffect(() => () => running.current?.abort.abort(), []);

  const send = useCallback(
    async (question: string) => {
      const id = crypto.randomUUID();
      const change = (changes: (turn: Turn) => Partial<Turn>) =>
        setTurns((turns) => turns.map((turn) => (turn.id === id ? { ...turn, ...changes(turn) } : turn)));
      setTurns((turns) => [...turns, { id, question, text: '', state: 'waiting', tools: [] }]);
      setRunning(true);
      const abort = new AbortController();
      try {
        const key = await bearer();
        running.current = { abort, bearer: key };
        const began = performance.now();
        const body = { message: question, sessionId: session.current };
        for await (const event of chat(target, key, body, abort.signal)) {
          if (event.type === 'start' && running.current?.abort === abort) running.current.messageId = event.messageId;
          change((turn) => after(turn, event, performance.now() - began));
        }
        change((turn) =>
          turn.state === 'done' || turn.state === 'failed'
            ? {}
            : { state: 'failed', error: new Error('the reply broke off') },
        );
      } catch (error) {
        if (!abort.signal.aborted) change(() => ({ state: 'failed', error }));
      } finally {
        setRunning(false);
      }
    },
    [target, bearer],
  );

  const stop = useCallback(() => {
    const { messageId, bearer: key } = running.current ?? {};
    // The stream then ends by itself, with what was said so far.
    if (messageId !== undefined && key !== undefined) void cancel(messageId, key);
  }, []);

  const restart = useCallback(() => {
    running.current?.abort.abort();
    session.current = crypto.randomUUID();
    setTurns([]);
  }, []);

  return { turns, isRunning, send, stop, restart };
}

function after(turn: Turn, event: ChatEvent, elapsedMs: number): Partial<Turn> {
  switch (event.type) {
    case 'start':
      return { state: 'running', agentName: event.agentName, routingReason: event.routingReason, model: event.model };
    case 'delta':
      return { text: turn.text + event.text, firstTokenMs: turn.firstTokenMs ?? elapsedMs };
    case 'ui':
      return { uiSpec: event.spec };
    case 'tool': {
      const others = turn.tools.filter((tool) => tool.name !== event.name);
      return { tools: [...others, { name: event.name, status: event.status }] };
    }
    case 'done':
      return {
        state: 'done',
        status: event.status,
        finishReason: event.finishReason,
        usage: event.usage,
        totalMs: elapsedMs,
      };
    case 'error':
      return { state: 'failed', error: new Error(event.detail), totalMs: elapsedMs };
  }
}
