// Button that copies a text shown on the page.
import { Button, type ButtonProps, Text } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import type { RefObject } from 'react';
import { useCopying } from './use-copying';

interface CopyButtonProps extends ButtonProps {
  value: string;
  /** Element with the text, which is selected if copying fails. */
  shown: RefObject<HTMLElement | null>;
  label?: string;
}

export function CopyButton({ value, shown, label = 'Copy', ...rest }: CopyButtonProps) {
  const { copied, copy } = useCopying(value, shown);
  const Icon = copied === 'yes' ? IconCheck : IconCopy;
  return (
    <>
      <Button {...rest} onClick={copy} leftSection={<Icon size={16} aria-hidden />}>
        <span aria-live="polite">{copied === 'yes' ? 'Copied' : label}</span>
      </Button>
      {copied === 'failed' && (
        <Text size="sm" role="alert">
          Your browser blocked copying. The text is selected: copy it with the keyboard.
        </Text>
      )}
    </>
  );
}
