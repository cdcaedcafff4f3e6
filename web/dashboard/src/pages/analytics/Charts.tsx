// Chart of the measure that the user selects.
import { Select } from '@mantine/core';
import { useState } from 'react';
import type { Analytics, Totals } from '../../api/analytics';
import { Chart, type Series } from './Chart';
import { count, stars, time } from './numbers';

interface Measure {
  title: string;
  kind: 'bars' | 'lines';
  series: Series[];
  format: (value: number | null) => string;
  max?: number;
  summary: (totals: Totals) => string;
}

const MEASURES: [Measure, ...Measure[]] = [
  {
    title: 'Messages',
    kind: 'bars',
    series: [
      { name: 'Answered', hue: 'first', of: ({ replies }) => replies.completed },
      { name: 'Interrupted or stopped', hue: 'second', of: ({ replies }) => replies.incomplete + replies.cancelled },
      { name: 'Failed', hue: 'bad', of: ({ replies }) => replies.failed },
    ],
    format: count,
    summary: ({ messages }) => `${count(messages)} total`,
  },
  {
    title: 'Conversations',
    kind: 'bars',
    series: [{ name: 'Conversations', hue: 'first', of: ({ conversations }) => conversations }],
    format: count,
    summary: ({ conversations }) => `${count(conversations)} started`,
  },
  {
    title: 'Response time',
    kind: 'lines',
    series: [
      { name: 'Median', hue: 'first', of: ({ responseTime }) => responseTime.p50Ms },
      { name: 'p95', hue: 'second', of: ({ responseTime }) => responseTime.p95Ms },
    ],
    format: time,
    summary: ({ responseTime }) => `median ${time(responseTime.p50Ms)}`,
  },
  {
    title: 'Time to first token',
    kind: 'lines',
    series: [
      { name: 'Median', hue: 'first', of: ({ firstTextTime }) => firstTextTime.p50Ms },
      { name: 'p95', hue: 'second', of: ({ firstTextTime }) => firstTextTime.p95Ms },
    ],
    format: time,
    summary: ({ firstTextTime }) => `median ${time(firstTextTime.p50Ms)}`,
  },
  {
    title: 'Tokens',
    kind: 'bars',
    series: [
      { name: 'Prompt', hue: 'first', of: ({ tokens }) => tokens.prompt },
      { name: 'Reply', hue: 'second', of: ({ tokens }) => tokens.completion },
    ],
    format: count,
    summary: ({ tokens }) => `${count(tokens.prompt)} prompt, ${count(tokens.completion)} reply`,
  },
  {
    title: 'Ratings',
    kind: 'lines',
    series: [{ name: 'Average', hue: 'first', of: ({ ratings }) => ratings.average }],
    format: stars,
    max: 5,
    summary: ({ ratings }) =>
      ratings.count === 0 ? 'none yet' : `${stars(ratings.average)} of 5, from ${count(ratings.count)}`,
  },
];

export function Charts({ analytics: { days, totals } }: { analytics: Analytics }) {
  const [title, setTitle] = useState(MEASURES[0].title);
  const { summary, ...measure } = MEASURES.find((measure) => measure.title === title) ?? MEASURES[0];
  return (
    <Chart
      {...measure}
      summary={summary(totals)}
      days={days}
      choice={
        <Select
          aria-label="Measure"
          size="sm"
          w={200}
          data={MEASURES.map(({ title }) => title)}
          value={title}
          onChange={(title) => title !== null && setTitle(title)}
        />
      }
    />
  );
}
