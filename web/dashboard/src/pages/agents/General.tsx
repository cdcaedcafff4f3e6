// Who the agent is, and who may reach it.
import { Button, Group, SegmentedControl, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core';
import type { AgentFields, Status } from '../../api/types';
import { Card } from '../../components/Card';
import type { SectionProps } from './section';

const STATUS_MEANS: Record<Status, string> = {
  draft: 'Not ready yet: it answers nobody, and the widget stays away.',
  active: 'It answers.',
  inactive: 'Switched off: visitors see its offline message.',
};

interface GeneralProps extends SectionProps {
  onDelete: () => void;
}

export function General({ form, isReadOnly, mistake, onDelete }: GeneralProps) {
  const { fields, set } = form;
  return (
    <Stack>
      <Card title="Identity">
        <TextInput
          label="Name"
          maxLength={200}
          value={fields.name}
          error={fields.name.trim() === '' ? 'An agent needs a name' : mistake('name')}
          onChange={(event) => set({ name: event.currentTarget.value })}
        />
        <TextInput
          label="Slug"
          description="Names it in documents and commands; fixed."
          value={fields.slug}
          readOnly
          variant="filled"
        />
        <Textarea
          label="Description"
          description="What it is for, in public words. Teams route by it, too."
          autosize
          minRows={2}
          maxRows={6}
          value={fields.description}
          error={mistake('description')}
          onChange={(event) => set({ description: event.currentTarget.value })}
        />
      </Card>
      <Card title="Visibility and status">
        <div>
          <Text size="sm" fw={500} mb={4} id="status-label">
            Status
          </Text>
          <SegmentedControl
            aria-labelledby="status-label"
            disabled={isReadOnly}
            value={fields.status}
            onChange={(status) => set({ status: status as Status })}
            data={[
              { value: 'draft', label: 'Draft' },
              { value: 'active', label: 'Active' },
              { value: 'inactive', label: 'Inactive' },
            ]}
          />
          <Text size="xs" c="dimmed" mt={6}>
            {STATUS_MEANS[fields.status]}
          </Text>
        </div>
        <Switch
          label="Public"
          description="The public API and the widget reach it. A private agent can still answer in teams."
          checked={fields.public}
          onChange={(event) => set({ public: event.currentTarget.checked })}
        />
      </Card>
      <WhenClientsLeave fields={fields} set={set} isReadOnly={isReadOnly} />
      {!isReadOnly && (
        <Card title="Delete this agent" about="It stops answering at once. Its conversations stay.">
          <Group>
            <Button variant="light" color="red" onClick={onDelete}>
              Delete agent
            </Button>
          </Group>
        </Card>
      )}
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
        <Text size="sm" fw={500} mb={4} id="leave-label">
          The running reply
        </Text>
        <SegmentedControl
          aria-labelledby="leave-label"
          disabled={isReadOnly}
          value={fields.onDisconnect}
          onChange={(value) => set({ onDisconnect: value as AgentFields['onDisconnect'] })}
          data={[
            { value: 'continue', label: 'Is finished' },
            { value: 'cancel', label: 'Is stopped' },
          ]}
        />
        <Text size="xs" c="dimmed" mt={6}>
          {fields.onDisconnect === 'continue'
            ? 'It is finished and stored, so that a visitor who comes back finds it.'
            : 'The model stops within a second, which saves tokens; what was said so far is stored.'}
        </Text>
      </div>
    </Card>
  );
}
