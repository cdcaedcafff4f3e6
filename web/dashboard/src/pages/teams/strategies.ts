// How a team chooses, in words.
import type { Routing } from '../../api/types';

export const STRATEGIES: Record<Routing, { label: string; about: string }> = {
  intent: {
    label: 'By intent',
    about:
      'Each message goes to the member whose specialization fits it; a conversation stays with its agent until the topic clearly changes.',
  },
  'round-robin': { label: 'Round robin', about: 'New conversations go to the members in turn.' },
  random: { label: 'Random', about: 'New conversations go to any member.' },
};
