// Converts URL filters to API parameters.
import type { ConversationFilter } from '../../api/conversations';
import type { ConversationSearch } from '../../router';

export const RATINGS = [
  { value: '', label: 'Any rating', min: undefined, max: undefined },
  { value: 'good', label: '4 and 5 stars', min: 4, max: 5 },
  { value: 'middling', label: '3 stars', min: 2.5, max: 3.5 },
  { value: 'bad', label: '1 and 2 stars', min: 1, max: 2.4 },
  { value: 'rated', label: 'Any stars', min: 1, max: 5 },
];

/** Converts URL filters; days are in the user's time zone. */
export function filterOf(search: ConversationSearch): ConversationFilter {
  const day = (date: string, time: string) => {
    const at = new Date(`${date}T${time}`);
    return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
  };
  const since = search.since && day(search.since, '00:00:00');
  const until = search.until && day(search.until, '23:59:59.999');
  const rating = RATINGS.find(({ value }) => value === search.rating);
  return {
    ...(search.agent && { agent: search.agent }),
    ...(search.team && { team: search.team }),
    ...(since && { since }),
    ...(until && { until }),
    ...(rating?.min && { minRating: rating.min, maxRating: rating.max }),
    ...(search.visitor && { visitor: search.visitor }),
    ...(search.text && { text: search.text }),
  };
}
