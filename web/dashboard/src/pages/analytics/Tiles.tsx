// Totals of the period.
import { Paper, Text } from '@mantine/core';
import type { Totals } from '../../api/analytics';
import { change, count, part, stars, time } from './numbers';

interface TilesProps {
  totals: Totals;
  /** Messages of the period before, once known. */
  messagesBefore: number | undefined;
}

export function Tiles({ totals, messagesBefore }: TilesProps) {
  const { replies, responseTime, firstTextTime, tokens, ratings } = totals;
  return (
    <dl className="tiles">
      <Tile name="Messages" value={count(totals.messages)} more={change(messagesBefore, totals.messages)} isLead />
      <Tile name="Conversations" value={count(totals.conversations)} more="started in this period" />
      <Tile
        name="Answered"
        value={part(replies.completed, totals.messages)}
        more={`${count(replies.completed)} of ${count(totals.messages)}`}
      />
      <Tile
        name="Not answered"
        value={count(totals.messages - replies.completed)}
        more={`${count(replies.failed)} failed, ${count(replies.incomplete)} interrupted, ${count(replies.cancelled)} stopped`}
      />
      <Tile name="Response time" value={time(responseTime.p50Ms)} more={`p95 ${time(responseTime.p95Ms)}`} />
      <Tile name="Time to first token" value={time(firstTextTime.p50Ms)} more={`p95 ${time(firstTextTime.p95Ms)}`} />
      <Tile
        name="Tokens"
        value={count(tokens.prompt + tokens.completion)}
        more={`${count(tokens.completion)} in replies`}
      />
      <Tile name="Rating" value={stars(ratings.average)} more={`${count(ratings.count)} rated`} />
      {totals.leads !== undefined && (
        <Tile
          name="Leads"
          value={count(totals.leads)}
          more={`${part(totals.leads, totals.conversations)} of conversations`}
        />
      )}
    </dl>
  );
}

function Tile({ name, value, more, isLead }: { name: string; value: string; more: string; isLead?: boolean }) {
  return (
    <Paper className="panel" p="md">
      <Text component="dt" size="xs" c="dimmed" fw={550}>
        {name}
      </Text>
      <Text component="dd" fz={isLead ? '2rem' : '1.5rem'} fw={650} lh={1.3}>
        {value}
      </Text>
      <Text component="dd" size="xs" c="dimmed">
        {more}
      </Text>
    </Paper>
  );
}
