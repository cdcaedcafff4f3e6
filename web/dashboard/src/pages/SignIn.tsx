// The way in for people with an account.
import { Alert, Button, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useEffect, useState } from 'react';
import { Problem } from '../api/client';
import { SESSION_KEY, sessionQuery, signIn } from '../api/session';
import { Trouble } from '../components/Trouble';
import { Welcome } from './Welcome';

const route = getRouteApi('/sign-in');

export function SignIn() {
  const { to } = route.useSearch();
  const client = useQueryClient();
  const session = useQuery(sessionQuery);
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const entering = useMutation({
    mutationFn: () => signIn(email.trim(), password),
    meta: { isSignIn: true },
    onSuccess: (session) => client.setQueryData(SESSION_KEY, session),
  });
  const isIn = session.data !== null && session.data !== undefined;
  const navigate = useNavigate();
  useEffect(() => {
    if (isIn) void navigate({ to: to ?? '/agents', replace: true });
  }, [isIn, navigate, to]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    entering.mutate();
  };
  return (
    <Welcome title="Sign in" about="To configure agents and to read what their visitors ask.">
      <form onSubmit={submit}>
        <Stack>
          {entering.isError && <Refusal error={entering.error} />}
          <TextInput
            label="E-mail"
            type="email"
            autoComplete="username"
            required
            withAsterisk={false}
            autoFocus
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
            description="Forgotten? An owner of your organization can make a link that sets a new one."
          />
          <Button type="submit" loading={entering.isPending} fullWidth mt="xs">
            Sign in
          </Button>
        </Stack>
      </form>
    </Welcome>
  );
}

function Refusal({ error }: { error: unknown }) {
  if (error instanceof Problem && error.status === 401) {
    return (
      <Alert color="red" variant="light" role="alert" title="E-mail or password is wrong">
        Check both and try again.
      </Alert>
    );
  }
  return <Trouble error={error} />;
}
