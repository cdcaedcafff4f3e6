// Error for resources in use, with the names of the references.
import { Alert, List } from '@mantine/core';
import { Problem } from '../api/client';
import { ErrorAlert } from './ErrorAlert';

interface User {
  kind: string;
  id: string;
  slug: string;
}

/** Returns the references of a resource if they caused the error. */
export function usersOf(error: unknown): User[] | undefined {
  const users = error instanceof Problem ? error.details['usedBy'] : undefined;
  return Array.isArray(users) ? (users as User[]) : undefined;
}

export function RemovalError({ error }: { error: unknown }) {
  const users = usersOf(error);
  return users === undefined ? <ErrorAlert error={error} /> : <StillInUse users={users} />;
}

export function StillInUse({ users }: { users: User[] }) {
  return (
    <Alert color="yellow" variant="light" role="alert" title="Still in use">
      Change these first:
      <List size="sm" mt={4}>
        {users.map((user) => (
          <List.Item key={user.id}>
            {user.kind} {user.slug}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
