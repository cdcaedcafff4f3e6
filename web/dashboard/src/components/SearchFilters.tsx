// Filters that several lists share: text, agent or team, days.
import { Button, Group, Select, TextInput } from '@mantine/core';
import { IconSearch, IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { listQuery } from '../api/resources';
import { useSession } from '../api/session';

/** Pause after typing before the filter applies. */
const DEBOUNCE_MS = 400;

interface SearchFiltersProps {
  label: string;
  children: ReactNode;
  /** Removes all filters; absent if there are none. */
  onClear: (() => void) | undefined;
}

export function SearchFilters({ label, children, onClear }: SearchFiltersProps) {
  return (
    <Group gap="xs" align="flex-end" className="filters" role="search" aria-label={label}>
      {children}
      {onClear !== undefined && (
        <Button variant="subtle" color="gray" leftSection={<IconX size={16} aria-hidden />} onClick={onClear}>
          Clear
        </Button>
      )}
    </Group>
  );
}

interface SearchInputProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
}

export function SearchInput({ label, value, onChange }: SearchInputProps) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text.trim() === value) return undefined;
    const timer = setTimeout(() => onChange(text.trim()), DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text, value, onChange]);
  return (
    <TextInput
      className="filter-search"
      aria-label={label}
      placeholder={label}
      maxLength={200}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
    />
  );
}

interface Owner {
  agent?: string | undefined;
  team?: string | undefined;
}

interface OwnerSelectProps {
  search: Owner;
  className: string;
  onChange: (owner: Owner) => void;
}

export function OwnerSelect({ search, className, onChange }: OwnerSelectProps) {
  const org = useSession().organization.id;
  const agents = useQuery(listQuery(org, 'agents')).data ?? [];
  const teams = useQuery(listQuery(org, 'teams')).data ?? [];
  const named = (things: { id: string; name: string }[]) => things.map(({ id, name }) => ({ value: id, label: name }));
  const owners = [
    { value: '', label: 'All agents and teams' },
    ...(agents.length > 0 ? [{ group: 'Agents', items: named(agents) }] : []),
    ...(teams.length > 0 ? [{ group: 'Teams', items: named(teams) }] : []),
  ];
  const own = (id: string | null) => {
    const isTeam = teams.some((team) => team.id === id);
    onChange({ agent: id && !isTeam ? id : undefined, team: id && isTeam ? id : undefined });
  };
  return (
    <Select
      className={className}
      aria-label="Agent or team"
      searchable
      data={owners}
      value={search.agent ?? search.team ?? ''}
      onChange={own}
    />
  );
}

interface Days {
  since?: string | undefined;
  until?: string | undefined;
}

export function DayInputs({ search, onChange }: { search: Days; onChange: (days: Days) => void }) {
  return (
    <>
      <TextInput
        type="date"
        label="From"
        value={search.since ?? ''}
        max={search.until}
        onChange={(event) => onChange({ since: event.currentTarget.value || undefined })}
      />
      <TextInput
        type="date"
        label="To"
        value={search.until ?? ''}
        min={search.since}
        onChange={(event) => onChange({ until: event.currentTarget.value || undefined })}
      />
    </>
  );
}
