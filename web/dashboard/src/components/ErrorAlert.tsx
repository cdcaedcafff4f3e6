// Error messages with advice.
import { Alert, Button, Center, Code, Stack, Text, Title } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { type Icon, IconAlertTriangle, IconCompass, IconLock } from '@tabler/icons-react';
import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { Problem, ReplyFailure, Unreachable } from '../api/client';

/** Title, advice and request id of an error. */
export function explain(error: unknown): { title: string; advice: string; requestId?: string } {
  if (error instanceof Unreachable) {
    return {
      title: 'The service cannot be reached',
      advice: 'Check your connection, then try again. Nothing was lost.',
    };
  }
  if (error instanceof ReplyFailure) return { title: 'No complete reply', advice: sentence(error.message) };
  if (!(error instanceof Problem)) {
    return {
      title: 'Something unexpected happened',
      advice: 'Reload the page. If it happens again, contact your administrator.',
    };
  }
  const known = { ...(error.requestId !== undefined && { requestId: error.requestId }) };
  const detail = sentence(error.message);
  if (error.status === 429) {
    const wait = error.retryAfterSeconds === undefined ? 'in a moment' : `in ${error.retryAfterSeconds} s`;
    return { title: 'Too many requests', advice: `Try again ${wait}.`, ...known };
  }
  if (error.status === 403) {
    return {
      title: 'You do not have permission',
      advice: `${detail} Ask an owner of your organization for the right.`,
      ...known,
    };
  }
  if (error.status === 404) {
    return {
      title: 'Not found',
      advice: 'It may have been deleted, or it belongs to another organization.',
      ...known,
    };
  }
  if (error.status >= 500) {
    return { title: 'The service has a problem', advice: `${detail} Try again in a moment.`, ...known };
  }
  return {
    title: error.param === undefined ? 'The request was rejected' : `Check “${error.param}”`,
    advice: detail,
    ...known,
  };
}

function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

export function ErrorAlert({ error, retry }: { error: unknown; retry?: () => void }) {
  const { title, advice, requestId } = explain(error);
  return (
    <Alert color="red" variant="light" icon={<IconAlertTriangle />} title={title} role="alert">
      <Stack gap="xs" align="flex-start">
        <Text size="sm">{advice}</Text>
        {requestId !== undefined && (
          <Text size="xs">
            Request <Code>{requestId}</Code>
          </Text>
        )}
        {retry !== undefined && (
          <Button size="xs" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

/** Shows an error that has no place on the page as a notification. */
export function notifyError(error: unknown): void {
  const { title, advice } = explain(error);
  notifications.show({ color: 'red', title, message: advice, autoClose: 10_000 });
}

export function PageFailure({ error, reset }: ErrorComponentProps) {
  return (
    <Stack p="xl" maw={640} mx="auto">
      <Title order={1}>Something went wrong</Title>
      <ErrorAlert error={error} retry={reset} />
    </Stack>
  );
}

export function NotFound() {
  return (
    <main>
      <DeadEnd icon={IconCompass} title="Page not found">
        The link may be outdated, or the page was renamed.
      </DeadEnd>
    </main>
  );
}

/** Page that exists but needs another role. */
export function NotForThisRole() {
  return (
    <DeadEnd icon={IconLock} title="Your role cannot open this page">
      An owner of your organization can change your role.
    </DeadEnd>
  );
}

function DeadEnd({ icon: Icon, title, children }: { icon: Icon; title: string; children: string }) {
  return (
    <Center mih="60vh" p="xl">
      <Stack align="center" gap="sm" ta="center">
        <Icon size={40} stroke={1.4} aria-hidden />
        <Title order={1}>{title}</Title>
        <Text c="dimmed">{children}</Text>
        <Button component={Link} to="/agents">
          Go to agents
        </Button>
      </Stack>
    </Center>
  );
}
