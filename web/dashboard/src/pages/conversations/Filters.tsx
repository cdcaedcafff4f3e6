// Filters of the conversation list.
import { Select } from '@mantine/core';
import { DayInputs, OwnerSelect, SearchFilters, SearchInput } from '../../components/SearchFilters';
import type { ConversationSearch } from '../../router';
import { RATINGS } from './filter';

interface FiltersProps {
  search: ConversationSearch;
  onChange: (changes: Partial<ConversationSearch>) => void;
  onClear: () => void;
}

export function Filters({ search, onChange, onClear }: FiltersProps) {
  return (
    <SearchFilters label="Conversations" onClear={Object.keys(search).length > 0 ? onClear : undefined}>
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
      <OwnerSelect className="filter-owner" search={search} onChange={onChange} />
      <Select
        className="filter-short"
        aria-label="Rating"
        data={RATINGS.map(({ value, label }) => ({ value, label }))}
        value={search.rating ?? ''}
        onChange={(rating) => onChange({ rating: rating || undefined })}
      />
      <DayInputs search={search} onChange={onChange} />
    </SearchFilters>
  );
}
