// Notice to users who signed in with a link and have no password to come back with.
import { Alert, Button } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconLock } from '@tabler/icons-react';
import { lazy, Suspense } from 'react';
import { useSession } from '../api/session';

const ChangePassword = lazy(() => import('./ChangePassword').then((module) => ({ default: module.ChangePassword })));

export function PasswordReminder() {
  const [isOpen, { open, close }] = useDisclosure(false);
  const isNeeded = useSession().user.hasPassword === false;
  return (
    <>
      {isNeeded && (
        <Alert
          color="blue"
          variant="light"
          mb="lg"
          icon={<IconLock size={18} aria-hidden />}
          title="You have no password yet"
        >
          Your link worked once. Without a password you need a new one to come back.{' '}
          <Button variant="light" size="compact-sm" onClick={open}>
            Choose a password
          </Button>
        </Alert>
      )}
      {isOpen && (
        <Suspense>
          <ChangePassword onClose={close} />
        </Suspense>
      )}
    </>
  );
}
