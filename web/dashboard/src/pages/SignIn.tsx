// Sign-in page.
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { sessionQuery } from '../api/session';
import { SignInForm } from '../components/SignInForm';
import { Welcome } from './Welcome';

const route = getRouteApi('/sign-in');

export function SignIn() {
  const { to } = route.useSearch();
  const session = useQuery(sessionQuery);
  const isIn = session.data !== null && session.data !== undefined;
  const navigate = useNavigate();
  useEffect(() => {
    if (isIn) void navigate({ to: to ?? '/agents', replace: true });
  }, [isIn, navigate, to]);
  return (
    <Welcome title="Sign in" about="Configure agents and read their conversations.">
      <SignInForm />
    </Welcome>
  );
}
