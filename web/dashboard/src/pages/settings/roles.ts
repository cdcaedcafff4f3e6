// Labels and descriptions of roles.
import type { Role } from '../../api/types';

export const ROLES: Record<Role, { label: string; about: string }> = {
  owner: { label: 'Owner', about: 'Full access, including members and API keys' },
  editor: { label: 'Editor', about: 'Configures agents, teams and providers' },
  operator: { label: 'Operator', about: 'Exports and deletes conversations' },
  viewer: { label: 'Viewer', about: 'Read-only access' },
};
