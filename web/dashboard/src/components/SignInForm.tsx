// Email and password form.
import { Alert, Button, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Problem } from '../api/client';
import { lastOrganization, SESSION_KEY, signIn } from '../api/session';
import { ErrorAlert } from './ErrorAlert';

export function SignInForm() {
  const client = useQueryClient();
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [organization, setOrganization] = useState(lastOrganization);
  const entering = useMutation({
    mutationFn: () => signIn(email.trim(), password, organization.trim()),
    meta: { isSignIn: true },
    onSuccess: (session) => client.setQueryData(SESSION_KEY, session),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    entering.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        {entering.isError && <Refusal error={entering.error} />}
        <TextInput
          label="Email"
          type="email"
          autoComplete="username"
          required
          withAsterisk={false}
          autoFocus
          data-autofocus
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          required
          withAsterisk={false}
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          description="Forgotten? An owner of your organization can create a link to set a new one; on the server, “switchboard admin link” does."
        />
        <TextInput
          label="Organization"
          description="Its short name (slug). Needed if several organizations use this installation."
          autoComplete="organization"
          value={organization}
          onChange={(event) => setOrganization(event.currentTarget.value)}
        />
        <Button type="submit" loading={entering.isPending} fullWidth mt="xs">
          Sign in
        </Button>
      </Stack>
    </form>
  );
}

function Refusal({ error }: { error: unknown }) {
  if (error instanceof Problem && error.status === 401) {
    const lacksOrganization = error.param === 'organization';
    return (
      <Alert
        color="red"
        variant="light"
        role="alert"
        title={lacksOrganization ? 'Name your organization' : 'Wrong email, password or organization'}
      >
        {lacksOrganization
          ? 'Several organizations use this installation. Enter the short name of yours and try again.'
          : 'Check all three and try again.'}
      </Alert>
    );
  }
  return <ErrorAlert error={error} />;
}
