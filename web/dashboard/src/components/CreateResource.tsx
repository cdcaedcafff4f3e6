// Dialog that creates an agent or a team with a name; all other fields are edited on its page.
import { TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Problem } from '../api/client';
import { slugOf, validateSlug } from '../slug';
import { DialogForm } from './DialogForm';

interface CreateResourceProps {
  title: string;
  placeholder: string;
  create: (names: { name: string; slug: string }) => Promise<unknown>;
  onClose: () => void;
  children?: ReactNode;
}

export function CreateResource({ title, placeholder, create, onClose, children }: CreateResourceProps) {
  const [name, setName] = useState('');
  const [ownSlug, setOwnSlug] = useState<string>();
  const slug = ownSlug ?? slugOf(name);
  const creating = useMutation({ mutationFn: () => create({ name: name.trim(), slug }) });
  const isTaken = creating.error instanceof Problem && creating.error.code === 'CONFLICT';
  const fieldError = slug === '' ? undefined : validateSlug(slug);
  const submit = () => {
    if (fieldError === undefined) creating.mutate();
  };
  return (
    <DialogForm
      title={title}
      action="Create"
      error={isTaken ? null : creating.error}
      isPending={creating.isPending}
      isIncomplete={name.trim() === '' || slug === ''}
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
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Slug"
        description="Identifier in files and commands. It cannot be changed later."
        required
        withAsterisk={false}
        value={slug}
        error={isTaken ? 'This slug is taken: choose another' : fieldError}
        onChange={(event) => {
          setOwnSlug(event.currentTarget.value);
          creating.reset();
        }}
      />
      {children}
    </DialogForm>
  );
}
