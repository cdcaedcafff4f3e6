// Dialog that creates an agent or a team with a name; all other fields are edited on its page.
import { Button, Collapse, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconChevronDown } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Problem } from '../api/client';
import { proposeSlug, validateSlug } from '../slug';
import { DialogForm } from './DialogForm';

interface CreateResourceProps {
  title: string;
  placeholder: string;
  /** Start of the slug of a name without Latin letters. */
  fallbackSlug: string;
  /** Slugs that others have. */
  takenSlugs: string[];
  create: (names: { name: string; slug: string }) => Promise<unknown>;
  onClose: () => void;
  children?: ReactNode;
}

export function CreateResource(props: CreateResourceProps) {
  const { title, placeholder, fallbackSlug, takenSlugs, create, onClose, children } = props;
  const [name, setName] = useState('');
  const [ownSlug, setOwnSlug] = useState<string>();
  const [isAdvanced, advanced] = useDisclosure(false);
  const slug = ownSlug ?? proposeSlug(name, fallbackSlug, takenSlugs);
  const creating = useMutation({ mutationFn: () => create({ name: name.trim(), slug }) });
  const isTaken = creating.error instanceof Problem && creating.error.code === 'CONFLICT';
  const slugError = isTaken ? 'This slug is taken: choose another' : validateSlug(slug);
  const submit = () => {
    if (validateSlug(slug) === undefined) creating.mutate();
    else advanced.open();
  };
  return (
    <DialogForm
      title={title}
      action="Create"
      error={isTaken ? null : creating.error}
      isPending={creating.isPending}
      isIncomplete={name.trim() === ''}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        placeholder={placeholder}
        required
        withAsterisk={false}
        maxLength={200}
        data-autofocus
        value={name}
        onChange={(event) => {
          setName(event.currentTarget.value);
          creating.reset();
        }}
      />
      {children}
      <div>
        <Button
          variant="subtle"
          size="compact-sm"
          color="gray"
          aria-expanded={isAdvanced || isTaken}
          rightSection={<IconChevronDown size={14} aria-hidden />}
          onClick={advanced.toggle}
        >
          Advanced
        </Button>
        <Collapse expanded={isAdvanced || isTaken}>
          <TextInput
            mt="xs"
            label="Slug"
            description="Identifier in files and commands. It cannot be changed later."
            value={slug}
            error={slugError}
            onChange={(event) => {
              setOwnSlug(event.currentTarget.value);
              creating.reset();
            }}
          />
        </Collapse>
      </div>
    </DialogForm>
  );
}
