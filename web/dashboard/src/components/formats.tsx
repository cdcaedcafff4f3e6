// Badges, times, ratings and names that several pages share.
import { Badge, Group, Rating, Text, Tooltip } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { Status } from '../api/types';

const STATUS = {
  active: { color: 'green', label: 'Active' },
  draft: { color: 'gray', label: 'Draft' },
  inactive: { color: 'orange', label: 'Inactive' },
} as const;

export function StatusBadge({ status, isPublic }: { status: Status; isPublic?: boolean }) {
  return (
    <Group gap={6} wrap="nowrap">
      <Badge color={STATUS[status].color}>{STATUS[status].label}</Badge>
      {isPublic === false && <Badge color="gray">Private</Badge>}
    </Group>
  );
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];
// Created on first use, because that takes long on phones.
let relative: Intl.RelativeTimeFormat | undefined;
let exact: Intl.DateTimeFormat | undefined;
const AGE_AGAIN_MS = 30_000;

function age(at: string): string {
  const seconds = (new Date(at).getTime() - Date.now()) / 1000;
  const step = STEPS.find(([, length]) => Math.abs(seconds) >= length);
  relative ??= new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  return step === undefined ? 'just now' : relative.format(Math.round(seconds / step[1]), step[0]);
}

/** Relative time with the exact time as a tooltip. */
export function When({ at }: { at: string }) {
  const [, again] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => again((count) => count + 1), AGE_AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <Tooltip label={exactTime(at)}>
      <Text component="time" dateTime={at} size="sm" c="dimmed" className="nowrap">
        {age(at)}
      </Text>
    </Tooltip>
  );
}

export function exactTime(at: string): string {
  exact ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
  return exact.format(new Date(at));
}

export function Stars({ rating }: { rating: unknown }) {
  if (typeof rating !== 'number')
    return (
      <Text size="sm" c="dimmed" component="span" aria-label="not rated">
        –
      </Text>
    );
  return (
    <span role="img" aria-label={`rated ${rating} of 5`}>
      <Rating value={rating} fractions={2} readOnly size="sm" aria-hidden inert />
    </span>
  );
}

const SIZE_UNITS = [
  ['MB', 1_000_000],
  ['kB', 1_000],
] as const;

/** Size of a file with at most one decimal. */
export function fileSize(bytes: number): string {
  const unit = SIZE_UNITS.find(([, length]) => bytes >= length);
  return unit === undefined ? `${bytes} B` : `${Number((bytes / unit[1]).toFixed(1))} ${unit[0]}`;
}

/** Duration; measured durations of 0 ms are shown as less than 1 ms. */
export function took(milliseconds: number): string {
  return Math.round(milliseconds) < 1 ? 'under 1 ms' : seconds(milliseconds);
}

export function seconds(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
