// Identity, status and visibility of the agent.
import { SegmentedControl, Stack, Switch, Text } from '@mantine/core';
import type { AgentFields, Status } from '../../api/types';
import { Card } from '../../components/Card';
import { Naming, StatusChoice } from '../../components/Identity';
import type { SectionProps } from './section';

const STATUS_MEANS: Record<Status, string> = {
  draft: 'Not live yet: visitors see the offline message.',
  active: 'Live: it answers visitors.',
  inactive: 'Disabled: visitors see the offline message.',
};

interface GeneralProps extends SectionProps {
  agentId: string;
}

export function General({ form, isReadOnly, fieldError, agentId }: GeneralProps) {
  const { fields, set } = form;
  return (
    <Stack>
      <Card title="Identity">
        <Naming
          kind="agents"
          id={agentId}
          form={form}
          nameless="An agent needs a name"
          about="Public. Teams also use it for routing."
          fieldError={fieldError}
        />
      </Card>
      <Card title="Visibility and status">
        <StatusChoice
          status={fields.status}
          isReadOnly={isReadOnly}
          onChange={(status) => set({ status })}
          means={STATUS_MEANS[fields.status]}
        />
        <Switch
          label="Public"
          description="Available to the public API and the widget. A private agent answers only as the default of a team."
          checked={fields.public}
          onChange={(event) => set({ public: event.currentTarget.checked })}
        />
      </Card>
      <WhenClientsLeave fields={fields} set={set} isReadOnly={isReadOnly} />
    </Stack>
  );
}

function WhenClientsLeave({
  fields,
  set,
  isReadOnly,
}: {
  fields: AgentFields;
  set: SectionProps['form']['set'];
  isReadOnly: boolean;
}) {
  return (
    <Card title="When a client disconnects">
      <div>
        <Text size="sm" fw={600} mb={4} id="leave-label">
          Running reply
        </Text>
        <SegmentedControl
          aria-labelledby="leave-label"
          readOnly={isReadOnly}
          value={fields.onDisconnect}
          onChange={(value) => set({ onDisconnect: value as AgentFields['onDisconnect'] })}
          data={[
            { value: 'continue', label: 'Finish' },
            { value: 'cancel', label: 'Stop' },
          ]}
        />
        <Text size="xs" c="dimmed" mt={6}>
          {fields.onDisconnect === 'continue'
            ? 'The reply is finished and stored, so that a returning visitor finds it.'
            : 'The model stops within a second, which saves tokens. The text so far is stored.'}
        </Text>
      </div>
    </Card>
  );
}
