// Bar for unsaved changes, with the outcome of saving, and the prompt before leaving the page with them.
import { Button, Group, Paper, Stack, Text, Tooltip } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { useBlocker } from '@tanstack/react-router';
import { isReloading } from '../reload';
import type { Draft } from '../use-draft';
import { useHold } from '../use-held-session';
import type { Saving } from '../use-saving';
import { Dialog } from './Dialog';
import { ErrorAlert } from './ErrorAlert';

const SHORTCUT = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘S' : 'Ctrl S';

interface SaveBarProps {
  form: Pick<Draft<object>, 'isChanged' | 'isRestored' | 'reset'>;
  saving: Pick<Saving, 'save' | 'isSaving' | 'isSaved' | 'error' | 'forget'>;
  /** Reason why the form cannot be saved. */
  invalidReason: string | undefined;
}

export function SaveBar({ form, saving, invalidReason }: SaveBarProps) {
  const { isChanged } = form;
  useHold(isChanged);
  useHotkeys([['mod+S', () => isChanged && invalidReason === undefined && saving.save()]], []);
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next }) => isChanged && current.pathname !== next.pathname,
    enableBeforeUnload: () => isChanged && !isReloading(),
    withResolver: true,
  });
  const discard = () => {
    form.reset();
    saving.forget();
  };
  return (
    <>
      {(isChanged || saving.isSaved || saving.error !== null) && (
        <Paper className="save-bar" px="md" py="xs" component="section" aria-label="Changes">
          {saving.error !== null && <ErrorAlert error={saving.error} />}
          <Group justify="space-between" gap="xs" mih={36}>
            <Text
              size="sm"
              fw={550}
              role="status"
              c={invalidReason === undefined ? undefined : 'var(--mantine-color-error)'}
            >
              {invalidReason ?? stateOf(form, saving)}
            </Text>
            {isChanged && (
              <Group gap="xs">
                <Button variant="default" onClick={discard} disabled={saving.isSaving}>
                  Discard
                </Button>
                <Tooltip label={SHORTCUT}>
                  <Button
                    aria-keyshortcuts="Control+S Meta+S"
                    onClick={saving.save}
                    loading={saving.isSaving}
                    disabled={invalidReason !== undefined}
                  >
                    Save
                  </Button>
                </Tooltip>
              </Group>
            )}
          </Group>
        </Paper>
      )}
      {leaving.status === 'blocked' && (
        <Dialog onClose={leaving.reset} title="Leave without saving?">
          <Stack>
            <Text size="sm">Your changes are not saved.</Text>
            <Group justify="flex-end">
              <Button
                variant="subtle"
                color="red"
                onClick={() => {
                  discard();
                  leaving.proceed();
                }}
              >
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

function stateOf(form: SaveBarProps['form'], saving: SaveBarProps['saving']): string {
  if (saving.error !== null) return form.isChanged ? 'Not saved. Your changes are still here.' : '';
  if (!form.isChanged) return 'Saved. Changes take effect within two seconds.';
  if (saving.isSaved) return 'Saved. Unsaved changes were made since.';
  return form.isRestored ? 'Unsaved changes, restored in this tab' : 'Unsaved changes';
}
