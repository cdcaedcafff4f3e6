// Publishing of an agent or a team: the button in the title row, and what comes after.
import { ActionIcon, Button, Group, List, Menu, Stack, Text } from '@mantine/core';
import { IconDots, IconPlayerPause, IconRocket, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import type { Status } from '../api/types';
import { fieldName } from '../field-names';
import { flat } from '../merge';
import type { Draft } from '../use-draft';
import { Dialog } from './Dialog';

interface LifecycleProps {
  kind: 'agent' | 'team';
  form: Pick<Draft<{ name: string; status: Status; public: boolean }>, 'base' | 'patch'>;
  saving: { saveWith: (changes: { status: Status }, onDone: () => void) => void; isSaving: boolean };
  /** Reason why the form cannot be saved. */
  invalidReason: string | undefined;
  onInstall: () => void;
  onDelete: () => void;
}

export function Lifecycle({ kind, form, saving, invalidReason, onInstall, onDelete }: LifecycleProps) {
  const isActive = form.base.status === 'active';
  // Fields that went live with the publication.
  const [published, setPublished] = useState<string[]>();
  const publish = () => {
    const changes = [...flat(form.patch).keys()].filter((field) => field !== 'status');
    saving.saveWith({ status: 'active' }, () => setPublished(changes));
  };
  return (
    <Group gap="xs" wrap="nowrap">
      {!isActive && (
        <Button
          leftSection={<IconRocket size={16} aria-hidden />}
          loading={saving.isSaving}
          disabled={invalidReason !== undefined}
          onClick={publish}
        >
          Publish
        </Button>
      )}
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="default" size="input-sm" aria-label="More actions">
            <IconDots size={18} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {isActive && (
            <Menu.Item
              leftSection={<IconPlayerPause size={16} aria-hidden />}
              onClick={() => saving.saveWith({ status: 'inactive' }, () => undefined)}
            >
              Take offline
            </Menu.Item>
          )}
          <Menu.Item color="red" leftSection={<IconTrash size={16} aria-hidden />} onClick={onDelete}>
            Delete {kind}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {published !== undefined && (
        <Dialog title={`${form.base.name} is live`} onClose={() => setPublished(undefined)}>
          <Stack>
            <Text size="sm">
              {form.base.public
                ? 'It answers within two seconds. Now put it on your page.'
                : 'It is private: it answers only through a team. Make it public to put it on a page.'}
            </Text>
            {published.length > 0 && (
              <div>
                <Text size="sm">These changes went live with it:</Text>
                <List size="sm">
                  {published.map((field) => (
                    <List.Item key={field}>{fieldName(field)}</List.Item>
                  ))}
                </List>
              </div>
            )}
            <Group justify="flex-end">
              <Button variant="default" onClick={() => setPublished(undefined)}>
                Close
              </Button>
              <Button
                data-autofocus
                onClick={() => {
                  setPublished(undefined);
                  onInstall();
                }}
              >
                Install it
              </Button>
            </Group>
          </Stack>
        </Dialog>
      )}
    </Group>
  );
}
