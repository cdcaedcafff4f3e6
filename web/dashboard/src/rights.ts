// Permissions of a session. The dashboard hides what the service would reject.
export const RIGHTS = {
  readConfiguration: 'readConfiguration',
  configure: 'configure',
  manageKeys: 'manageKeys',
  readConversations: 'readConversations',
  readLeads: 'readLeads',
  actOnConversations: 'actOnConversations',
  manageUsers: 'manageUsers',
  readAudit: 'readAudit',
} as const;

export type Right = (typeof RIGHTS)[keyof typeof RIGHTS];
