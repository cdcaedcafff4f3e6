// Tests a saved provider and shows what worked, what was adapted and what the provider said.
import { Alert, Badge, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { testProvider } from '../../api/resources';
import { useSession } from '../../api/session';
import type { Provider, ProviderTestReport } from '../../api/types';
import { seconds } from '../../components/formats';
import { providerWords } from '../../provider-words';

const NAMES: Record<string, string> = { models: 'List of models', message: 'Message', 'tool-call': 'Tool call' };
const OUTCOMES: Record<string, { label: string; color: string }> = {
  worked: { label: 'Worked', color: 'green' },
  partly: { label: 'Partly', color: 'orange' },
  failed: { label: 'Failed', color: 'red' },
  skipped: { label: 'Skipped', color: 'gray' },
};

export function ConnectionTest({ provider, isSaved }: { provider: Provider; isSaved: boolean }) {
  const org = useSession().organization.id;
  const test = useMutation({ mutationFn: () => testProvider(org, provider.id) });
  return (
    <Stack gap="xs">
      <Group gap="sm">
        <Button variant="default" loading={test.isPending} disabled={!isSaved} onClick={() => test.mutate()}>
          Test connection
        </Button>
        <Text size="xs" c="dimmed">
          {isSaved ? 'Sends two short messages to the model.' : 'Save the changes first.'}
        </Text>
      </Group>
      <div aria-live="polite">
        {test.error !== null && <Alert color="red">{test.error.message}</Alert>}
        {test.data !== undefined && <Report report={test.data} />}
      </div>
    </Stack>
  );
}

function Report({ report }: { report: ProviderTestReport }) {
  return (
    <Alert
      color={report.works ? 'green' : 'red'}
      title={report.works ? 'Agents can answer with this provider.' : 'Agents cannot answer with this provider.'}
    >
      <Stack gap="xs">
        {report.steps.map((step) => (
          <div key={step.name}>
            <Group gap="xs">
              <Badge color={OUTCOMES[step.outcome]?.color ?? 'gray'}>{OUTCOMES[step.outcome]?.label}</Badge>
              <Text size="sm" fw={600}>
                {NAMES[step.name]} · {seconds(step.tookMs)}
              </Text>
            </Group>
            <Text size="sm">{step.detail}</Text>
            {step.providerError !== null && (
              <Text size="xs" c="dimmed">
                The provider said: {providerWords(step.providerError)}
              </Text>
            )}
          </div>
        ))}
        {report.leftOut.length > 0 && (
          <Text size="sm">
            The model refuses these, which are left out or sent in another form: {report.leftOut.join(', ')}.
          </Text>
        )}
      </Stack>
    </Alert>
  );
}
