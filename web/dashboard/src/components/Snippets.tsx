// Code to copy, for one of several places.
import { Code, List, Select, Stack, Text } from '@mantine/core';
import { useRef, useState } from 'react';
import { CopyButton } from './CopyButton';

export interface Snippet {
  place: string;
  code: string;
  /** Things to do with the code, in order. */
  steps: string[];
}

export function Snippets({ label, snippets }: { label: string; snippets: [Snippet, ...Snippet[]] }) {
  const [place, setPlace] = useState(snippets[0].place);
  const { code, steps } = snippets.find((snippet) => snippet.place === place) ?? snippets[0];
  const shown = useRef<HTMLPreElement>(null);
  return (
    <Stack gap="sm">
      <Select
        label={label}
        maw={320}
        // Viewers select, too.
        readOnly={false}
        variant="default"
        data={snippets.map(({ place }) => place)}
        value={place}
        onChange={(place) => place !== null && setPlace(place)}
      />
      <List type="ordered" size="sm">
        {steps.map((step) => (
          <List.Item key={step}>{step}</List.Item>
        ))}
      </List>
      <Code block ref={shown} className="text-block" tabIndex={0}>
        {code}
      </Code>
      <div>
        <CopyButton value={code} shown={shown} label="Copy snippet" variant="default" />
      </div>
      <Text size="xs" c="dimmed">
        The id never changes, so that the snippet stays as it is.
      </Text>
    </Stack>
  );
}
