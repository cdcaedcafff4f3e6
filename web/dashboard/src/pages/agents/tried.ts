// Agents that the user has tried in the playground of this browser.
import { attempt } from '../../storage';

const PREFIX = 'tried:';

export function recordTry(agentId: string): void {
  attempt(() => localStorage.setItem(PREFIX + agentId, 'yes'));
}

/** Returns whether the agent was tried; without storage the checklist keeps the step open. */
export function isTried(agentId: string): boolean {
  return typeof attempt(() => localStorage.getItem(PREFIX + agentId)) === 'string';
}
