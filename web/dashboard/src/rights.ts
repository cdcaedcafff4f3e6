// The rights that a session can carry, as the service names them. What is hidden here is refused there as well.
export const RIGHTS = {
  readConfiguration: 'readConfiguration',
  configure: 'configure',
  manageKeys: 'manageKeys',
  readConversations: 'readConversations',
  actOnConversations: 'actOnConversations',
  manageUsers: 'manageUsers',
  readAudit: 'readAudit',
} as const;

export type Right = (typeof RIGHTS)[keyof typeof RIGHTS];
