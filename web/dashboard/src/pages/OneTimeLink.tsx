// Redeems a one-time link: invitation, password or sign-in. The secret is behind the `#`, which
// browsers do not send to servers, and is removed from the address bar immediately.
import { Alert, Button, Center, Loader, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link as RouterLink, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { findFieldError, Problem } from '../api/client';
import { changePassword, redeem, SESSION_KEY } from '../api/session';
import type { Session } from '../api/types';
import { ErrorAlert } from '../components/ErrorAlert';
import { PASSWORD_CHARS_MIN, validatePassword } from '../password';
import { Welcome } from './Welcome';

const secret = { current: '' };

/** Secret of the link, read once even if effects and renders run twice. */
function takeSecret(): string {
  const found = window.location.hash.slice(1);
  if (found !== '') secret.current = found;
  return secret.current;
}

interface Person {
  name: string;
  email: string;
  /** Short name of the organization. */
  organization: string;
  purpose: string;
}

/** Returns the invited user if the service requires a password. */
function wanted(error: unknown): Person | undefined {
  const asks = error instanceof Problem && error.param === 'password' && error.details['email'] !== undefined;
  return asks ? (error.details as unknown as Person) : undefined;
}

export function Link() {
  const [held] = useState(takeSecret);
  const client = useQueryClient();
  const navigate = useNavigate();
  const [person, setPerson] = useState<Person>();
  const [newcomer, setNewcomer] = useState<Session>();
  const goOn = () => void navigate({ to: '/agents', replace: true });
  const redeeming = useMutation({
    mutationFn: (password: string | undefined) => redeem(held, password),
    meta: { isSignIn: true },
    onSuccess: (session) => {
      secret.current = '';
      client.setQueryData(SESSION_KEY, session);
      if (session.user.hasPassword === false) setNewcomer(session);
      else goOn();
    },
    onError: (error) => setPerson((known) => wanted(error) ?? known),
  });
  const begun = useRef(false);
  const { mutate } = redeeming;
  useEffect(() => {
    window.history.replaceState(window.history.state, '', window.location.pathname);
    if (begun.current || held === '') return;
    begun.current = true;
    // Sign-in links need no password; for others the service returns the user.
    mutate(undefined);
  }, [held, mutate]);
  useEffect(() => {
    // A link in the same tab differs only behind the `#`, which does not reload the page.
    const again = () => window.location.reload();
    window.addEventListener('hashchange', again);
    return () => window.removeEventListener('hashchange', again);
  }, []);
  if (held === '')
    return (
      <Dead title="This link is incomplete" about="Open it exactly as it was sent to you, or ask for a new one." />
    );
  if (newcomer !== undefined) return <OfferPassword session={newcomer} onDone={goOn} />;
  if (person !== undefined)
    return <ChoosePassword person={person} error={redeeming.error} isPending={redeeming.isPending} onChoose={mutate} />;
  if (redeeming.error instanceof Problem && redeeming.error.status === 401) {
    return (
      <Dead
        title="This link no longer works"
        about="It was used, replaced, or has expired. Ask the sender for a new one. The first owner creates one on the server with “switchboard admin link”."
      />
    );
  }
  return (
    <Welcome title="One moment" about="Your link is being checked.">
      {redeeming.isError ? (
        <ErrorAlert error={redeeming.error} retry={() => mutate(undefined)} />
      ) : (
        <Center>
          <Loader aria-label="Checking the link" />
        </Center>
      )}
    </Welcome>
  );
}

function Dead({ title, about }: { title: string; about: string }) {
  return (
    <Welcome title={title} about={about}>
      <Button component={RouterLink} to="/sign-in" variant="default" fullWidth>
        Go to sign-in
      </Button>
    </Welcome>
  );
}

/** Offers a password to a user who is signed in already, because the link does not work again. */
function OfferPassword({ session, onDone }: { session: Session; onDone: () => void }) {
  const { user, organization } = session;
  const client = useQueryClient();
  const choosing = useMutation({
    mutationFn: (password: string) => changePassword(password),
    meta: { isSignIn: true },
    onSuccess: (session) => {
      client.setQueryData(SESSION_KEY, session);
      onDone();
    },
  });
  return (
    <ChoosePassword
      person={{ name: user.name, email: user.email, organization: organization.slug, purpose: 'sign-in' }}
      error={choosing.error}
      isPending={choosing.isPending}
      onChoose={choosing.mutate}
      onSkip={onDone}
    />
  );
}

const ABOUT: Record<string, string> = {
  reset: 'Choose a new password. Your other sessions are signed out.',
  'sign-in': 'You are signed in, but your link does not work again. Choose a password to come back without a new one.',
};

interface ChoosePasswordProps {
  person: Person;
  error: unknown;
  isPending: boolean;
  onChoose: (password: string) => void;
  /** Goes on without a password; without it, one is required. */
  onSkip?: () => void;
}

function ChoosePassword({ person, error, isPending, onChoose, onSkip }: ChoosePasswordProps) {
  const [password, setPassword] = useState('');
  const isSpent = error instanceof Problem && error.status === 401;
  const field = onSkip === undefined ? 'password' : 'newPassword';
  const refused = wanted(error) === undefined ? findFieldError(error, field) : undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onChoose(password);
  };
  const about = ABOUT[person.purpose] ?? 'Choose a password to sign in.';
  return (
    <Welcome title={`Welcome, ${person.name}`} about={about}>
      <form onSubmit={submit}>
        <Stack>
          {isSpent && (
            <Alert color="red" variant="light" role="alert" title="This link no longer works">
              Ask the sender for a new one.
            </Alert>
          )}
          {!isSpent && refused === undefined && wanted(error) === undefined && error !== null && (
            <ErrorAlert error={error} />
          )}
          <TextInput
            label="Email"
            description={`You sign in with it to the organization “${person.organization}”.`}
            type="email"
            autoComplete="username"
            value={person.email}
            readOnly
            variant="filled"
          />
          <PasswordInput
            label="New password"
            description={`At least ${PASSWORD_CHARS_MIN} characters. Long and memorable is better than short and complex.`}
            autoComplete="new-password"
            data-autofocus
            autoFocus
            value={password}
            error={refused ?? validatePassword(password)}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <Button
            type="submit"
            loading={isPending}
            disabled={password === '' || validatePassword(password) !== undefined}
            fullWidth
          >
            Continue
          </Button>
          {onSkip !== undefined && (
            <Button variant="subtle" onClick={onSkip} fullWidth>
              Not now
            </Button>
          )}
        </Stack>
      </form>
    </Welcome>
  );
}
