// Charts of the analytics page.
import type { Analytics } from '../../api/analytics';
import { Chart, type Series } from './Chart';
import { count, stars, time } from './numbers';

const MESSAGES: Series[] = [
  { name: 'Answered', hue: 'first', of: ({ messages, replies }) => messages - replies.failed },
  { name: 'Failed', hue: 'bad', of: ({ replies }) => replies.failed },
];
const CONVERSATIONS: Series[] = [{ name: 'Conversations', hue: 'first', of: ({ conversations }) => conversations }];
const RESPONSE_TIME: Series[] = [
  { name: 'Median', hue: 'first', of: ({ responseTime }) => responseTime.p50Ms },
  { name: 'p95', hue: 'second', of: ({ responseTime }) => responseTime.p95Ms },
];
const FIRST_TEXT: Series[] = [
  { name: 'Median', hue: 'first', of: ({ firstTextTime }) => firstTextTime.p50Ms },
  { name: 'p95', hue: 'second', of: ({ firstTextTime }) => firstTextTime.p95Ms },
];
const TOKENS: Series[] = [
  { name: 'Prompt', hue: 'first', of: ({ tokens }) => tokens.prompt },
  { name: 'Reply', hue: 'second', of: ({ tokens }) => tokens.completion },
];
const RATINGS: Series[] = [{ name: 'Average', hue: 'first', of: ({ ratings }) => ratings.average }];

export function Charts({ analytics: { days, totals } }: { analytics: Analytics }) {
  const within = (p50: number | null) => `median ${time(p50)}`;
  return (
    <div className="charts">
      <Chart
        title="Messages"
        summary={`${count(totals.messages)} total`}
        kind="bars"
        days={days}
        series={MESSAGES}
        format={count}
      />
      <Chart
        title="Conversations"
        summary={`${count(totals.conversations)} started`}
        kind="bars"
        days={days}
        series={CONVERSATIONS}
        format={count}
      />
      <Chart
        title="Response time"
        summary={within(totals.responseTime.p50Ms)}
        kind="lines"
        days={days}
        series={RESPONSE_TIME}
        format={time}
      />
      <Chart
        title="Time to first token"
        summary={within(totals.firstTextTime.p50Ms)}
        kind="lines"
        days={days}
        series={FIRST_TEXT}
        format={time}
      />
      <Chart
        title="Tokens"
        summary={`${count(totals.tokens.prompt)} prompt, ${count(totals.tokens.completion)} reply`}
        kind="bars"
        days={days}
        series={TOKENS}
        format={count}
      />
      <Chart
        title="Ratings"
        summary={
          totals.ratings.count === 0
            ? 'none yet'
            : `${stars(totals.ratings.average)} of 5, from ${count(totals.ratings.count)}`
        }
        kind="lines"
        days={days}
        series={RATINGS}
        format={stars}
        max={5}
      />
    </div>
  );
}
