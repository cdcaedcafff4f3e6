// Labels and descriptions of routing strategies.
import type { Routing } from '../../api/types';

export const STRATEGIES: Record<Routing, { label: string; about: string }> = {
  intent: {
    label: 'By intent',
    about:
      'Messages go to the member whose specialization fits; a conversation stays with its agent until the topic clearly changes.',
  },
  'round-robin': { label: 'Round robin', about: 'New conversations rotate through the members.' },
  random: { label: 'Random', about: 'New conversations go to a random member.' },
};
