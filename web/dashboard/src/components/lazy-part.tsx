// Parts of a page that are loaded on first use. A part that cannot be loaded leaves the rest of the page alone.
import { Alert, Button, Group, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { Component, type ComponentType, lazy, type ReactNode, Suspense, useEffect, useState } from 'react';
import { reloadPage } from '../reload';
import { LoadingRows } from './Page';

/** Waits before further attempts to load a part, in milliseconds. */
const RETRY_DELAYS_MS = [300, 1500];

type Load<P> = () => Promise<ComponentType<P>>;

async function loadPatiently<P>(load: Load<P>): Promise<{ default: ComponentType<P> }> {
  for (const delay of RETRY_DELAYS_MS) {
    try {
      return { default: await load() };
    } catch {
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
  return { default: await load() };
}

/** Returns a component that is loaded on first use, or earlier by `preload`. */
export function lazyPart<P extends object>(load: Load<P>) {
  // A lazy component that failed stays failed, so each attempt has its own.
  const attempt = (number: number) => ({ number, Shown: lazy(() => loadPatiently(load)) as ComponentType<P> });
  let last = attempt(0);
  function Part(props: P) {
    const [{ number, Shown }, setAttempt] = useState(() => last);
    const retry = () => {
      last = attempt(number + 1);
      setAttempt(last);
    };
    return (
      <PartBoundary key={number} retry={retry}>
        <Suspense fallback={<LoadingRows />}>
          <Shown {...props} />
        </Suspense>
      </PartBoundary>
    );
  }
  return Object.assign(Part, { preload: () => void load().catch(() => undefined) });
}

/** Loads parts while the page is idle, so that opening them does not depend on the network. */
export function usePreload(parts: { preload: () => void }[]): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the parts of a page never change
  useEffect(() => {
    const load = () => {
      for (const part of parts) part.preload();
    };
    if (typeof requestIdleCallback === 'undefined') {
      const timer = setTimeout(load, 1000);
      return () => clearTimeout(timer);
    }
    const idle = requestIdleCallback(load);
    return () => cancelIdleCallback(idle);
  }, []);
}

class PartBoundary extends Component<{ retry: () => void; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    if (!this.state.hasFailed) return this.props.children;
    return (
      <Alert
        color="red"
        variant="light"
        role="alert"
        icon={<IconAlertTriangle />}
        title="This part could not be loaded"
      >
        <Text size="sm">
          The connection may be interrupted, or the service was just upgraded. Your unsaved changes are kept, also when
          you reload.
        </Text>
        <Group gap="xs" mt="xs">
          <Button size="xs" variant="default" onClick={this.props.retry}>
            Try again
          </Button>
          <Button size="xs" variant="default" onClick={reloadPage}>
            Reload the page
          </Button>
        </Group>
      </Alert>
    );
  }
}
