// What people may do, in words.
import type { Role } from '../../api/types';

export const ROLES: Record<Role, { label: string; about: string }> = {
  owner: { label: 'Owner', about: 'Everything, people and API keys included' },
  editor: { label: 'Editor', about: 'Configures agents, teams and providers' },
  operator: { label: 'Operator', about: 'Looks after conversations' },
  viewer: { label: 'Viewer', about: 'Looks only' },
};
