// Sign-in dialog above a page with unsaved changes whose session has ended.
import { Button, Stack, Text } from '@mantine/core';
import { Dialog } from './Dialog';
import { SignInForm } from './SignInForm';

export function SignInAgain({ onLeave }: { onLeave: () => void }) {
  return (
    <Dialog
      onClose={onLeave}
      title="You have been signed out"
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack>
        <Text size="sm">Sign in to continue. Your unsaved changes are still here.</Text>
        <SignInForm />
        <Button variant="subtle" color="red" onClick={onLeave}>
          Discard and leave
        </Button>
      </Stack>
    </Dialog>
  );
}
