// Filters of the conversation list.
import { Button, Group, Select, TextInput } from '@mantine/core';
import { IconSearch, IconX } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import type { Agent, Team } from '../../api/types';
import type { ConversationSearch } from '../../router';
import { RATINGS } from './filter';

/** Pause after typing before the filter applies. */
const DEBOUNCE_MS = 400;

interface FiltersProps {
  search: ConversationSearch;
  agents: Agent[];
  teams: Team[];
  onChange: (changes: Partial<ConversationSearch>) => void;
  onClear: () => void;
}

export function Filters({ search, agents, teams, onChange, onClear }: FiltersProps) {
  const owners = [
    { value: '', label: 'All agents and teams' },
    ...(agents.length > 0
      ? [{ group: 'Agents', items: agents.map(({ id, name }) => ({ value: id, label: name })) }]
      : []),
    ...(teams.length > 0 ? [{ group: 'Teams', items: teams.map(({ id, name }) => ({ value: id, label: name })) }] : []),
  ];
  const own = (id: string | null) => {
    const isTeam = teams.some((team) => team.id === id);
    onChange({ agent: id && !isTeam ? id : undefined, team: id && isTeam ? id : undefined });
  };
  return (
    <Group gap="xs" align="flex-end" className="filters" role="search" aria-label="Conversations">
      <SearchInput
        label="Search messages"
        value={search.text ?? ''}
        onChange={(text) => onChange({ text: text || undefined })}
      />
      <SearchInput
        label="Visitor name, email or id"
        value={search.visitor ?? ''}
        onChange={(visitor) => onChange({ visitor: visitor || undefined })}
      />
      <Select
        className="filter-owner"
        aria-label="Agent or team"
        searchable
        data={owners}
        value={search.agent ?? search.team ?? ''}
        onChange={own}
      />
      <Select
        className="filter-short"
        aria-label="Rating"
        data={RATINGS.map(({ value, label }) => ({ value, label }))}
        value={search.rating ?? ''}
        onChange={(rating) => onChange({ rating: rating || undefined })}
      />
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
      {Object.keys(search).length > 0 && (
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

function SearchInput({ label, value, onChange }: SearchInputProps) {
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
