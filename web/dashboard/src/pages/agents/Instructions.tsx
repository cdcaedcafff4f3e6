// Instructions, provider and model of the agent.
import {
  Anchor,
  Group,
  NumberInput,
  Select,
  SimpleGrid,
  Slider,
  Stack,
  Switch,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { listQuery } from '../../api/resources';
import { useSession } from '../../api/session';
import { Card } from '../../components/Card';
import type { SectionProps } from './section';

const INSTALLATION_DEFAULT = '';

export function Instructions({ form, isReadOnly, fieldError }: SectionProps) {
  const { fields, set } = form;
  return (
    <Stack>
      <Card
        title="Instructions"
        about="The system prompt. Visitors do not see it, but a model can be tricked into revealing it: keep secrets out."
      >
        <Textarea
          aria-label="Instructions"
          autosize
          minRows={10}
          maxRows={28}
          placeholder={'You are the support agent of … \nAnswer briefly and in the visitor’s language.'}
          value={fields.instructions}
          error={fieldError('instructions')}
          onChange={(event) => set({ instructions: event.currentTarget.value })}
        />
        <Text size="xs" c="dimmed" ta="right" mt={-8}>
          {[...fields.instructions].length.toLocaleString()} characters
        </Text>
      </Card>
      <ProviderAndModel form={form} isReadOnly={isReadOnly} fieldError={fieldError} />
    </Stack>
  );
}

function ProviderAndModel({ form, isReadOnly, fieldError }: SectionProps) {
  const { fields, set } = form;
  const providers = useQuery(listQuery(useSession().organization.id, 'providers'));
  const known = providers.data?.map((provider) => provider.slug) ?? [];
  const model = providers.data?.find((provider) => provider.slug === fields.provider)?.model;
  return (
    <Card
      title="Provider and model"
      actions={
        <Anchor component={Link} to="/settings/providers" size="sm">
          Manage providers
        </Anchor>
      }
    >
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Select
          label="Provider"
          data={[{ value: INSTALLATION_DEFAULT, label: 'Default' }, ...known]}
          value={fields.provider ?? INSTALLATION_DEFAULT}
          error={fieldError('provider')}
          onChange={(slug) => set({ provider: slug || null })}
        />
        <Select
          label="Fallback"
          description="Used if the provider fails before the first token."
          data={[{ value: INSTALLATION_DEFAULT, label: 'None' }, ...known]}
          value={fields.fallbackProvider ?? INSTALLATION_DEFAULT}
          error={fieldError('fallbackProvider')}
          onChange={(slug) => set({ fallbackProvider: slug || null })}
        />
        <TextInput
          label="Model"
          placeholder={model ?? 'Provider default'}
          description="Leave empty for the provider default."
          value={fields.model ?? ''}
          error={fieldError('model')}
          onChange={(event) => set({ model: event.currentTarget.value || null })}
        />
        <NumberInput
          label="Maximum reply length"
          description="In tokens."
          min={1}
          max={1_000_000}
          allowDecimal={false}
          allowNegative={false}
          thousandSeparator=","
          value={fields.maxOutputTokens}
          error={fieldError('maxOutputTokens')}
          onChange={(value) => typeof value === 'number' && set({ maxOutputTokens: value })}
        />
      </SimpleGrid>
      <Temperature
        value={fields.temperature}
        isReadOnly={isReadOnly}
        onChange={(temperature) => set({ temperature })}
      />
      <Select
        label="Reasoning effort"
        description="How thoroughly a reasoning model thinks before it answers. Leave it empty for the provider's default."
        placeholder="Provider default"
        clearable
        readOnly={isReadOnly}
        data={REASONING_EFFORTS}
        value={fields.reasoningEffort ?? null}
        error={fieldError('reasoningEffort')}
        onChange={(value) => set({ reasoningEffort: REASONING_EFFORTS.find((effort) => effort === value) ?? null })}
      />
    </Card>
  );
}

const REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

const TEMPERATURE_START = 0.7;

function Temperature({
  value,
  isReadOnly,
  onChange,
}: {
  value: number | null;
  isReadOnly: boolean;
  onChange: (value: number | null) => void;
}) {
  const round = (number: number) => Math.round(number * 100) / 100;
  return (
    <div>
      <Group justify="space-between">
        <Switch
          label="Set the temperature"
          description="Lower is more predictable, higher more varied. Off: provider default."
          checked={value !== null}
          onChange={(event) => onChange(event.currentTarget.checked ? TEMPERATURE_START : null)}
        />
        {value !== null && (
          <Text size="sm" fw={600}>
            {round(value)}
          </Text>
        )}
      </Group>
      {value !== null && (
        <Slider
          mt="md"
          mb="lg"
          min={0}
          max={2}
          step={0.05}
          label={round}
          disabled={isReadOnly}
          thumbLabel="Temperature"
          value={round(value)}
          onChange={(number) => onChange(round(number))}
          marks={[
            { value: 0, label: '0' },
            { value: 1, label: '1' },
            { value: 2, label: '2' },
          ]}
        />
      )}
    </div>
  );
}
