// Running reply as an event stream from the service; watching it does not affect the visitor.
import { Loader, Text } from '@mantine/core';
import { useCallback, useEffect, useState } from 'react';
import { livePath } from '../../api/conversations';
import type { UiSpec } from '../../api/types';
import { Markdown } from '../../components/Markdown';
import { ProductStrip } from '../../components/ProductStrip';

interface LiveReplyProps {
  org: string;
  conversation: string;
  message: string;
  withAgent: boolean;
  onEnd: () => void;
}

interface SoFar {
  agentName: string;
  text: string;
  spec?: UiSpec;
}

/** Delay before a rejected stream is requested again. */
const AGAIN_MS = 1_500;

/** Restarts if the service rejects the stream, for example after a new generation. */
export function LiveReply(props: LiveReplyProps) {
  const [attempt, setAttempt] = useState(0);
  const again = useCallback(() => setAttempt((count) => count + 1), []);
  return <FollowedReply key={attempt} onRefused={again} {...props} />;
}

function FollowedReply(props: LiveReplyProps & { onRefused: () => void }) {
  const { org, conversation, message, withAgent, onEnd, onRefused } = props;
  const [reply, setReply] = useState<SoFar>({ agentName: '', text: '' });
  useEffect(() => {
    const source = new EventSource(livePath(org, conversation, message));
    let generation: number | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const on = (name: string, take: (data: Record<string, unknown>) => void) =>
      source.addEventListener(name, (event) => {
        // Connection errors have the same name as error events of the service, but no data.
        if (event instanceof MessageEvent) take(JSON.parse(event.data));
      });
    const end = () => {
      source.close();
      onEnd();
    };
    on('start', (start) => {
      const isAnew = generation !== start['generation'];
      generation = Number(start['generation']);
      setReply((before) => ({
        ...before,
        agentName: String(start['agentName'] ?? ''),
        text: isAnew ? '' : before.text,
      }));
    });
    on('delta', (delta) => setReply((before) => ({ ...before, text: before.text + String(delta['text']) })));
    on('ui', (spec) => setReply((before) => ({ ...before, spec: spec as unknown as UiSpec })));
    on('done', end);
    on('error', end);
    source.onerror = (event) => {
      if (event instanceof MessageEvent || source.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(onRefused, AGAIN_MS);
    };
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [org, conversation, message, onEnd, onRefused]);
  return (
    <article aria-label={reply.agentName || 'Agent'} aria-busy="true" className="live">
      {withAgent && reply.agentName !== '' && (
        <Text size="xs" fw={600}>
          {reply.agentName}
        </Text>
      )}
      <div className="said" data-role="assistant">
        {reply.text === '' ? (
          <Loader type="dots" size="sm" aria-label="The agent is answering" />
        ) : (
          <Markdown text={reply.text} />
        )}
      </div>
      {reply.spec?.type === 'product-grid' && (
        <div className="wide">
          <ProductStrip products={reply.spec.data} />
        </div>
      )}
    </article>
  );
}
