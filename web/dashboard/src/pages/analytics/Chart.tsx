// Chart over days with stacked bars or lines. Drawn here, because a library would be larger than all
// of this page. A table below it has the same totals.
import { Box, Group, Paper, Table, Text, Title } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { type PointerEvent, type ReactNode, useId, useState } from 'react';
import type { DayTotals } from '../../api/analytics';
import './charts.css';
import { dayName } from './numbers';
import { named, ticks } from './scale';

export interface Series {
  name: string;
  /** Color name of the style sheet. */
  hue: 'first' | 'second' | 'bad';
  of: (day: DayTotals) => number | null;
}

interface ChartProps {
  title: string;
  /** Total of the period. */
  summary: string;
  /** Selection of what the chart shows. */
  choice: ReactNode;
  kind: 'bars' | 'lines';
  days: DayTotals[];
  series: Series[];
  format: (value: number | null) => string;
  /** Upper bound of the values, if known. */
  max?: number;
}

const HEIGHT = 260;
const BELOW = 22;
const ABOVE = 8;
const LEFT = 52;
const NAME_WIDTH = 62;
const BAR_MAX = 34;

export function Chart(props: ChartProps) {
  const { title, summary, choice, days, series, format } = props;
  const { ref, width } = useElementSize();
  const [pointed, setPointed] = useState<number>();
  const titleId = useId();
  const day = pointed === undefined ? undefined : days[pointed];
  return (
    <Paper className="panel chart" p="md" component="section" aria-labelledby={titleId}>
      <Group justify="space-between" gap="xs">
        <div>
          <Title order={2} size="h3" id={titleId}>
            {title}
          </Title>
          <Text size="sm" c="dimmed">
            {day === undefined ? summary : readout(day, series, format)}
          </Text>
        </div>
        {choice}
      </Group>
      <Box ref={ref} mt="xs" mih={HEIGHT}>
        {width > 0 && <Drawing {...props} width={width} pointed={pointed} onPoint={setPointed} />}
      </Box>
      <Group gap="md" mt={4}>
        {series.map(({ name, hue }) => (
          <Group key={name} gap={6}>
            <span className="chart-swatch" data-hue={hue} aria-hidden />
            <Text size="xs">{name}</Text>
          </Group>
        ))}
      </Group>
      <details className="chart-table">
        <summary>Show as a table</summary>
        <TotalsTable {...props} />
      </details>
    </Paper>
  );
}

interface DrawingProps extends ChartProps {
  width: number;
  pointed: number | undefined;
  onPoint: (day: number | undefined) => void;
}

function Drawing({ title, summary, kind, days, series, format, max, width, pointed, onPoint }: DrawingProps) {
  const [inner, base] = [Math.max(width - LEFT, 1), HEIGHT - BELOW];
  const slot = inner / days.length;
  const sums = days.map((day) => series.map(({ of }) => of(day) ?? 0));
  const highest = Math.max(...sums.map((values) => (kind === 'bars' ? total(values) : Math.max(...values))));
  const lines = max === undefined ? ticks(highest) : Array.from({ length: max + 1 }, (_, line) => line);
  const top = lines[lines.length - 1] ?? 1;
  const y = (value: number) => base - (value / top) * (base - ABOVE);
  const x = (day: number) => LEFT + (day + 0.5) * slot;
  const point = (event: PointerEvent<SVGSVGElement>) => {
    const at = Math.floor((event.clientX - event.currentTarget.getBoundingClientRect().left - LEFT) / slot);
    onPoint(at >= 0 && at < days.length ? at : undefined);
  };
  return (
    <svg
      role="img"
      aria-label={`${title}: ${summary}`}
      width={width}
      height={HEIGHT}
      onPointerMove={point}
      onPointerLeave={() => onPoint(undefined)}
    >
      {pointed !== undefined && (
        <rect className="chart-pointed" x={x(pointed) - slot / 2} y={ABOVE} width={slot} height={base - ABOVE} />
      )}
      {lines.map((line) => (
        <g key={line}>
          <line className="chart-grid" x1={LEFT} x2={width} y1={y(line)} y2={y(line)} />
          <text className="chart-text" x={LEFT - 8} y={y(line) + 4} textAnchor="end">
            {format(line)}
          </text>
        </g>
      ))}
      {named(days.length, Math.floor(inner / NAME_WIDTH)).map((place) => (
        <text key={place} className="chart-text" x={x(place)} y={HEIGHT - 6} textAnchor="middle">
          {dayName(days[place]?.day ?? '')}
        </text>
      ))}
      {kind === 'bars'
        ? sums.map((values, day) => (
            <Bar key={days[day]?.day} values={values} series={series} x={x(day)} slot={slot} y={y} />
          ))
        : series.map((one) => <Line key={one.name} series={one} days={days} x={x} y={y} />)}
    </svg>
  );
}

interface BarProps {
  values: number[];
  series: Series[];
  x: number;
  slot: number;
  y: (value: number) => number;
}

function Bar({ values, series, x, slot, y }: BarProps) {
  const width = Math.min(Math.max(slot * 0.7, 1), BAR_MAX);
  let below = 0;
  return values.map((value, place) => {
    const one = series[place];
    if (one === undefined || value === 0) return null;
    const [foot, head] = [y(below), y(below + value)];
    below += value;
    return (
      <rect
        key={one.name}
        className="chart-mark"
        data-hue={one.hue}
        x={x - width / 2}
        y={head}
        width={width}
        height={Math.max(foot - head - 1, 1)}
        rx={Math.min(2, width / 2)}
      />
    );
  });
}

interface LineProps {
  series: Series;
  days: DayTotals[];
  x: (day: number) => number;
  y: (value: number) => number;
}

/** A day without a figure is a gap, not zero; a single day is a dot. */
function Line({ series, days, x, y }: LineProps) {
  const values = days.map((day) => series.of(day));
  const path = values.map((value, day) => {
    if (value === null) return '';
    const before = values[day - 1];
    return `${before === undefined || before === null ? 'M' : 'L'}${x(day).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  return (
    <g data-hue={series.hue} className="chart-line">
      <path d={path.join('')} />
      {values.map((value, day) => value !== null && <circle key={days[day]?.day} cx={x(day)} cy={y(value)} r={2.5} />)}
    </g>
  );
}

function TotalsTable({ title, days, series, format }: ChartProps) {
  return (
    <Box className="chart-table" tabIndex={0} role="region" aria-label={`${title}, day by day`}>
      <Table verticalSpacing={4} horizontalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Day</Table.Th>
            {series.map(({ name }) => (
              <Table.Th key={name} scope="col" ta="end">
                {name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {days.map((day) => (
            <Table.Tr key={day.day}>
              <Table.Th scope="row" fw={400} className="nowrap">
                {day.day}
              </Table.Th>
              {series.map(({ name, of }) => (
                <Table.Td key={name} ta="end">
                  {format(of(day))}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Box>
  );
}

function readout(day: DayTotals, series: Series[], format: ChartProps['format']): string {
  return `${dayName(day.day)}: ${series.map(({ name, of }) => `${name.toLowerCase()} ${format(of(day))}`).join(', ')}`;
}

function total(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
