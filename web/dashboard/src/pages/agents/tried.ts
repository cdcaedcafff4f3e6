// Agents that the user has tried in the playground of this browser.
const PREFIX = 'tried:';

export function recordTry(agentId: string): void {
  try {
    localStorage.setItem(PREFIX + agentId, 'yes');
  } catch {
    // Without storage the checklist keeps the step open.
  }
}

export function isTried(agentId: string): boolean {
  try {
    return localStorage.getItem(PREFIX + agentId) !== null;
  } catch {
    return false;
  }
}
