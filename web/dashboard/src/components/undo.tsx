// Notifications of changes that can be undone for a while.
import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';

export function notifyWithUndo(message: string, periodMs: number, undo: () => unknown): void {
  const id = notifications.show({
    color: 'green',
    autoClose: periodMs,
    message: (
      <Group gap="xs" justify="space-between">
        <Text size="sm">{message}</Text>
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => {
            notifications.hide(id);
            undo();
          }}
        >
          Undo
        </Button>
      </Group>
    ),
  });
}

/** Does something when the time to undo it is over, or when the page is left before. */
export function doAfter(message: string, periodMs: number, act: () => unknown, onUndo: () => unknown): void {
  const end = () => {
    clearTimeout(timer);
    removeEventListener('pagehide', finish);
  };
  const finish = () => {
    end();
    act();
  };
  const timer = setTimeout(finish, periodMs);
  addEventListener('pagehide', finish);
  notifyWithUndo(message, periodMs, () => {
    end();
    onUndo();
  });
}
