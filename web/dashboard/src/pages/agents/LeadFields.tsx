// Fields of a lead form: edit, reorder, add and remove.
import {
  ActionIcon,
  Button,
  Group,
  Input,
  Paper,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Textarea,
  TextInput,
} from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconPlus, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import type { LeadField } from '../../api/types';
import { isSame } from '../../merge';
import { FIELDS_MAX, proposeName, validateField } from './lead-form';

const TYPES: { value: LeadField['type']; label: string }[] = [
  { value: 'name', label: 'Name' },
  { value: 'email', label: 'Email address' },
  { value: 'phone', label: 'Phone number' },
  { value: 'company', label: 'Company' },
  { value: 'select', label: 'Choice from a list' },
  { value: 'text', label: 'Long text' },
];

interface LeadFieldsProps {
  fields: LeadField[];
  /** Fields as saved. */
  saved: LeadField[];
  isReadOnly: boolean;
  fieldError: (path: string) => string | undefined;
  onChange: (fields: LeadField[]) => void;
}

export function LeadFields({ fields, saved, isReadOnly, fieldError, onChange }: LeadFieldsProps) {
  const names = fields.map(({ name }) => name);
  const change = (index: number, changes: Partial<LeadField>) =>
    onChange(fields.map((field, at) => (at === index ? { ...field, ...changes } : field)));
  const relabel = (index: number, field: LeadField, label: string) => {
    const others = names.filter((_, at) => at !== index);
    // Leads are stored by name: only a new field that was not named by hand follows its label.
    const follows = !saved.some(({ name }) => name === field.name) && field.name === proposeName(field.label, others);
    change(index, { label, ...(follows && { name: proposeName(label, others) }) });
  };
  const move = (index: number, to: number) => {
    onChange(fields.map((field, at) => (at === index ? fields[to] : at === to ? fields[index] : field) as LeadField));
    // The focus follows the field.
    document.getElementById(moveId(to, to < index))?.focus();
  };
  const error = fields.length === 0 ? 'Add at least one field' : fieldError('leadForm.fields');
  return (
    <>
      {fields.map((field, index) => (
        <FieldRow
          key={index}
          field={field}
          index={index}
          isLast={index === fields.length - 1}
          errorOf={(part) => validateField(field, fields)[part] ?? fieldError(`leadForm.fields[${index}].${part}`)}
          isReadOnly={isReadOnly}
          onChange={(changes) => change(index, changes)}
          onLabel={(label) => relabel(index, field, label)}
          onMove={(to) => move(index, to)}
          onRemove={() => onChange(fields.filter((_, at) => at !== index))}
        />
      ))}
      {error !== undefined && <Input.Error>{error}</Input.Error>}
      {!isReadOnly && (
        <Group>
          <Button
            variant="default"
            leftSection={<IconPlus size={16} aria-hidden />}
            disabled={fields.length >= FIELDS_MAX}
            onClick={() =>
              onChange([...fields, { name: proposeName('', names), label: '', type: 'text', required: false }])
            }
          >
            Add field
          </Button>
        </Group>
      )}
    </>
  );
}

function moveId(index: number, isUp: boolean): string {
  return `move-lead-field-${index}-${isUp ? 'up' : 'down'}`;
}

interface FieldRowProps {
  field: LeadField;
  index: number;
  isLast: boolean;
  errorOf: (part: keyof LeadField) => string | undefined;
  isReadOnly: boolean;
  onChange: (changes: Partial<LeadField>) => void;
  onLabel: (label: string) => void;
  onMove: (to: number) => void;
  onRemove: () => void;
}

function FieldRow({ field, index, isLast, errorOf, isReadOnly, onChange, onLabel, onMove, onRemove }: FieldRowProps) {
  const number = index + 1;
  return (
    <Paper p="sm" radius="md" role="group" aria-label={`Field ${number}`}>
      <Group align="flex-start" wrap="nowrap" gap="sm">
        <Stack gap="xs" className="grow">
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs">
            <TextInput
              size="xs"
              label="Label"
              maxLength={200}
              value={field.label}
              error={errorOf('label')}
              onChange={(event) => onLabel(event.currentTarget.value)}
            />
            <Select
              size="xs"
              label="Type"
              data={TYPES}
              value={field.type}
              error={errorOf('type')}
              onChange={(type) => onChange({ type: type as LeadField['type'], options: undefined })}
            />
            <TextInput
              size="xs"
              label="Name in exports"
              maxLength={40}
              value={field.name}
              error={errorOf('name')}
              onChange={(event) => onChange({ name: event.currentTarget.value })}
            />
            <Switch
              size="xs"
              mt={{ base: 0, xs: 'lg' }}
              label="Required"
              checked={field.required}
              onChange={(event) => onChange({ required: event.currentTarget.checked })}
            />
          </SimpleGrid>
          {field.type === 'select' && (
            <Options
              options={field.options ?? []}
              error={errorOf('options')}
              onChange={(options) => onChange({ options })}
            />
          )}
        </Stack>
        {!isReadOnly && (
          <Stack gap={4}>
            <ActionIcon
              id={moveId(index, true)}
              variant="subtle"
              color="gray"
              aria-label={`Move field ${number} up`}
              disabled={index === 0}
              onClick={() => onMove(index - 1)}
            >
              <IconArrowUp size={16} aria-hidden />
            </ActionIcon>
            <ActionIcon
              id={moveId(index, false)}
              variant="subtle"
              color="gray"
              aria-label={`Move field ${number} down`}
              disabled={isLast}
              onClick={() => onMove(index + 1)}
            >
              <IconArrowDown size={16} aria-hidden />
            </ActionIcon>
            <ActionIcon variant="subtle" color="gray" aria-label={`Remove field ${number}`} onClick={onRemove}>
              <IconTrash size={16} aria-hidden />
            </ActionIcon>
          </Stack>
        )}
      </Group>
    </Paper>
  );
}

interface OptionsProps {
  options: string[];
  error: string | undefined;
  onChange: (options: string[]) => void;
}

function Options({ options, error, onChange }: OptionsProps) {
  // The text has empty lines while the user writes.
  const [text, setText] = useState('');
  const linesOf = (text: string) => text.split('\n').flatMap((line) => line.trim() || []);
  return (
    <Textarea
      size="xs"
      label="Options"
      description="One per line."
      autosize
      minRows={2}
      value={isSame(linesOf(text), options) ? text : options.join('\n')}
      error={error}
      onChange={(event) => {
        setText(event.currentTarget.value);
        onChange(linesOf(event.currentTarget.value));
      }}
    />
  );
}
