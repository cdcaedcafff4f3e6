// File uploads: the switch, the largest size and the accepted types.
import { Alert, Anchor, Checkbox, Group, NumberInput, Stack, Switch, Text } from '@mantine/core';
import { IconEyeOff } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useId } from 'react';
import type { FileSettings } from '../../api/files';
import { listQuery } from '../../api/resources';
import { useSession } from '../../api/session';
import { Card } from '../../components/Card';
import { FILE_GROUPS, FILES_DEFAULT, inOrder } from '../../file-types';
import type { SectionProps } from './section';

const MEGABYTE = 1_000_000;
const MEGABYTES_MAX = 25;

export function FileUploads({ form, fieldError }: SectionProps) {
  const { features, files = FILES_DEFAULT, provider } = form.fields;
  const isOn = features.enableFileUpload;
  // An empty list stays visible, because it keeps the agent from being saved.
  const isShown = isOn || files.types.length === 0;
  const set = (changes: Partial<FileSettings>) => form.set({ files: { ...files, ...changes } });
  return (
    <Card title="Files">
      <Switch
        label="File uploads"
        description="Visitors can send files with their messages."
        checked={isOn}
        error={fieldError('features.enableFileUpload')}
        onChange={(event) => form.set({ features: { ...features, enableFileUpload: event.currentTarget.checked } })}
      />
      {isOn && <BlindModelNote provider={provider} />}
      {isShown && (
        <>
          <NumberInput
            label="Largest file"
            description="1 to 25 MB."
            suffix=" MB"
            maw={220}
            min={1}
            max={MEGABYTES_MAX}
            decimalScale={2}
            allowNegative={false}
            value={files.maxBytes / MEGABYTE}
            error={fieldError('files.maxBytes')}
            onChange={(value) => typeof value === 'number' && set({ maxBytes: Math.round(value * MEGABYTE) })}
          />
          <Checkbox.Group
            label="Accepted types"
            value={files.types}
            error={files.types.length === 0 ? 'Choose at least one' : fieldError('files.types')}
            onChange={(types) => set({ types: inOrder(types) })}
          >
            <Stack gap="sm" my="xs">
              {FILE_GROUPS.map((group) => (
                <TypeGroup key={group.label} {...group} />
              ))}
            </Stack>
          </Checkbox.Group>
        </>
      )}
    </Card>
  );
}

function TypeGroup({ label, types }: (typeof FILE_GROUPS)[number]) {
  const id = useId();
  return (
    <div role="group" aria-labelledby={id}>
      <Text size="xs" c="dimmed" mb={4} id={id}>
        {label}
      </Text>
      <Group gap="md">
        {types.map(({ type, label }) => (
          <Checkbox key={type} value={type} label={label} />
        ))}
      </Group>
    </div>
  );
}

/** Note for agents whose provider is known and does not see pictures. */
function BlindModelNote({ provider: slug }: { provider: string | null }) {
  const providers = useQuery(listQuery(useSession().organization.id, 'providers'));
  const provider = providers.data?.find((provider) => provider.slug === slug);
  if (provider === undefined || provider.vision) return null;
  return (
    <Alert variant="light" color="yellow" icon={<IconEyeOff aria-hidden />}>
      <Text size="sm">
        This agent’s model does not see pictures; it will say so.{' '}
        <Anchor
          component={Link}
          to="/settings/providers"
          search={{ provider: provider.slug } as never}
          inherit
          c="inherit"
          underline="always"
        >
          Provider {provider.slug}
        </Anchor>
      </Text>
    </Alert>
  );
}
