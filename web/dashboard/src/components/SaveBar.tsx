// Bar for unsaved changes, and the prompt before leaving the page with them.
import { Button, Group, Paper, Stack, Text, Tooltip } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { useBlocker } from '@tanstack/react-router';
import { useHold } from '../use-held-session';
import { Dialog } from './Dialog';

const SHORTCUT = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘S' : 'Ctrl S';

interface SaveBarProps {
  isChanged: boolean;
  isSaving: boolean;
  /** Reason why the form cannot be saved. */
  invalidReason: string | undefined;
  onSave: () => void;
  onReset: () => void;
}

export function SaveBar({ isChanged, isSaving, invalidReason, onSave, onReset }: SaveBarProps) {
  useHold(isChanged);
  useHotkeys([['mod+S', () => isChanged && invalidReason === undefined && onSave()]], []);
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next }) => isChanged && current.pathname !== next.pathname,
    enableBeforeUnload: isChanged,
    withResolver: true,
  });
  return (
    <>
      {isChanged && (
        <Paper className="save-bar" px="md" py="xs">
          <Group justify="space-between" gap="xs">
            <Text
              size="sm"
              fw={550}
              role="status"
              c={invalidReason === undefined ? undefined : 'var(--mantine-color-error)'}
            >
              {invalidReason ?? 'Unsaved changes'}
            </Text>
            <Group gap="xs">
              <Button variant="default" onClick={onReset} disabled={isSaving}>
                Discard
              </Button>
              <Tooltip label={SHORTCUT}>
                <Button
                  aria-keyshortcuts="Control+S Meta+S"
                  onClick={onSave}
                  loading={isSaving}
                  disabled={invalidReason !== undefined}
                >
                  Save
                </Button>
              </Tooltip>
            </Group>
          </Group>
        </Paper>
      )}
      {leaving.status === 'blocked' && (
        <Dialog onClose={leaving.reset} title="Leave without saving?">
          <Stack>
            <Text size="sm">Your changes are not saved.</Text>
            <Group justify="flex-end">
              <Button variant="subtle" color="red" onClick={leaving.proceed}>
                Discard and leave
              </Button>
              <Button onClick={leaving.reset} data-autofocus>
                Stay
              </Button>
            </Group>
          </Stack>
        </Dialog>
      )}
    </>
  );
}
