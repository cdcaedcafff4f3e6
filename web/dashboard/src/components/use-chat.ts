// Chat with the saved agent, the draft, or both, including facts that visitors do not see:
// times, tokens and tool calls.
import { useCallback, useEffect, useRef, useState } from 'react';
import { ReplyFailure } from '../api/client';
import type { AttachedIds, Attachment } from '../api/files';
import { HISTORY_MAX, type HistoryMessage, type PlaygroundEvent } from '../api/playground';
import type { UiSpec } from '../api/types';

/** Version of the agent that answers. */
export type Side = 'draft' | 'saved';

export interface ToolCall {
  name: string;
  status: 'started' | 'finished' | 'failed';
  startedMs: number;
  tookMs?: number;
}

export interface Answer {
  side: Side;
  text: string;
  state: 'waiting' | 'running' | 'done' | 'failed';
  error?: unknown;
  model?: string | null;
  finishReason?: string | null;
  status?: string;
  usage?: { promptTokens?: number; completionTokens?: number } | null;
  firstTextMs?: number;
  totalMs?: number;
  tools: ToolCall[];
  uiSpec?: UiSpec;
}

/** Message to the agent; its text may be empty if it has files. */
export interface Question {
  text: string;
  files: Attachment[];
}

export interface Turn {
  id: string;
  question: Question;
  answers: Answer[];
}

export interface Chat {
  turns: Turn[];
  isRunning: boolean;
  send: (question: Question, sides: Side[]) => void;
  stop: () => void;
  restart: () => void;
}

export type Ask = (
  side: Side,
  question: Question,
  history: HistoryMessage[],
  signal: AbortSignal,
) => AsyncGenerator<PlaygroundEvent>;

export function useChat(ask: Ask): Chat {
  const [turns, setTurns] = useState<Turn[]>([]);
  // Ids only need to be unique; `randomUUID` is missing over plain http.
  const begun = useRef(0);
  const running = useRef<AbortController | undefined>(undefined);
  const [isRunning, setRunning] = useState(false);
  useEffect(() => () => running.current?.abort(), []);

  const send = useCallback(
    (question: Question, sides: Side[]) => {
      begun.current += 1;
      const id = String(begun.current);
      const abort = new AbortController();
      running.current = abort;
      setRunning(true);
      setTurns((turns) => [...turns, { id, question, answers: sides.map(unanswered) }]);
      const answer = async (side: Side) => {
        const change = (changes: (answer: Answer) => Partial<Answer>) =>
          setTurns((turns) => turns.map((turn) => (turn.id === id ? changed(turn, side, changes) : turn)));
        const began = performance.now();
        try {
          for await (const event of ask(side, question, history(turns, side), abort.signal)) {
            change((answer) => after(answer, event, performance.now() - began));
          }
          change((answer) =>
            isOver(answer) ? {} : { state: 'failed', error: new ReplyFailure('the reply was interrupted') },
          );
        } catch (error) {
          const totalMs = performance.now() - began;
          change(() =>
            abort.signal.aborted ? { state: 'done', status: 'stopped', totalMs } : { state: 'failed', error },
          );
        }
      };
      void Promise.all(sides.map(answer)).then(() => {
        if (running.current === abort) setRunning(false);
      });
    },
    [ask, turns],
  );

  const stop = useCallback(() => running.current?.abort(), []);
  const restart = useCallback(() => {
    running.current?.abort();
    setTurns([]);
  }, []);
  return { turns, isRunning, send, stop, restart };
}

function unanswered(side: Side): Answer {
  return { side, text: '', state: 'waiting', tools: [] };
}

function isOver({ state }: Answer): boolean {
  return state === 'done' || state === 'failed';
}

function changed(turn: Turn, side: Side, changes: (answer: Answer) => Partial<Answer>): Turn {
  const answers = turn.answers.map((answer) => (answer.side === side ? { ...answer, ...changes(answer) } : answer));
  return { ...turn, answers };
}

/** Returns the history for `side`: its own replies, and those of the other side where it has none. */
function history(turns: Turn[], side: Side): HistoryMessage[] {
  const said = turns.flatMap(({ question, answers }): HistoryMessage[] => {
    const answer = answers.find((answer) => answer.side === side) ?? answers[0];
    if (answer === undefined || answer.text === '') return [];
    const shown = answer.uiSpec === undefined ? {} : { uiSpec: answer.uiSpec };
    return [
      { role: 'user', content: question.text, ...attachedIds(question) },
      { role: 'assistant', content: answer.text, ...shown },
    ];
  });
  return said.slice(-HISTORY_MAX);
}

/** Returns the files of a question as fields of a request. */
export function attachedIds({ files }: Question): AttachedIds {
  return files.length === 0 ? {} : { attachments: files.map(({ fileId }) => ({ fileId })) };
}

function after(answer: Answer, event: PlaygroundEvent, elapsedMs: number): Partial<Answer> {
  switch (event.type) {
    case 'start':
      return { state: 'running', model: event.model };
    case 'delta':
      return { text: answer.text + event.text, firstTextMs: answer.firstTextMs ?? elapsedMs };
    case 'ui':
      return { uiSpec: event.spec };
    case 'tool':
      return { tools: calledTools(answer.tools, event, elapsedMs) };
    case 'done':
      return {
        state: 'done',
        status: event.status,
        finishReason: event.finishReason,
        usage: event.usage,
        totalMs: elapsedMs,
      };
    case 'error':
      return { state: 'failed', error: new ReplyFailure(event.detail), totalMs: elapsedMs };
  }
}

/** A tool may be called more than once; an end belongs to its oldest open call. */
function calledTools(
  tools: ToolCall[],
  { name, status }: { name: string; status: ToolCall['status'] },
  elapsedMs: number,
): ToolCall[] {
  if (status === 'started') return [...tools, { name, status, startedMs: elapsedMs }];
  const open = tools.findIndex((tool) => tool.name === name && tool.status === 'started');
  return tools.map((tool, index) => (index === open ? { ...tool, status, tookMs: elapsedMs - tool.startedMs } : tool));
}
