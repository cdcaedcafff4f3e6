// Name, slug, description and status fields that agents and teams share.
import { SegmentedControl, Text, Textarea, TextInput } from '@mantine/core';
import type { Status } from '../api/types';

interface Named {
  name: string;
  slug: string;
  description: string;
}

interface NamingProps {
  kind: 'agents' | 'teams';
  id: string;
  form: { fields: Named; set: (changes: Partial<Named>) => void };
  /** Error for an empty name. */
  nameless: string;
  /** Explains the description field. */
  about: string;
  fieldError: (path: string) => string | undefined;
}

export function Naming({ kind, id, form, nameless, about, fieldError }: NamingProps) {
  const { fields, set } = form;
  return (
    <>
      <TextInput
        label="Name"
        maxLength={200}
        value={fields.name}
        error={fields.name.trim() === '' ? nameless : fieldError('name')}
        onChange={(event) => set({ name: event.currentTarget.value })}
      />
      <TextInput
        label="Slug"
        description="Identifier in files and commands. It cannot be changed."
        value={fields.slug}
        readOnly
        variant="filled"
      />
      <TextInput
        label="Address"
        description="Clients send messages to this address. The id never changes."
        value={`/api/public/${kind}/${id}/chat`}
        readOnly
        variant="filled"
      />
      <Textarea
        label="Description"
        description={about}
        autosize
        minRows={2}
        maxRows={6}
        value={fields.description}
        error={fieldError('description')}
        onChange={(event) => set({ description: event.currentTarget.value })}
      />
    </>
  );
}

interface StatusChoiceProps {
  status: Status;
  isReadOnly: boolean;
  onChange: (status: Status) => void;
  /** Explains the selected status. */
  means?: string;
}

export function StatusChoice({ status, isReadOnly, onChange, means }: StatusChoiceProps) {
  return (
    <div>
      <Text size="sm" fw={600} mb={4} id="status-label">
        Status
      </Text>
      <SegmentedControl
        aria-labelledby="status-label"
        readOnly={isReadOnly}
        value={status}
        onChange={(status) => onChange(status as Status)}
        data={[
          { value: 'draft', label: 'Draft' },
          { value: 'active', label: 'Active' },
          { value: 'inactive', label: 'Inactive' },
        ]}
      />
      {means !== undefined && (
        <Text size="xs" c="dimmed" mt={6}>
          {means}
        </Text>
      )}
    </div>
  );
}
