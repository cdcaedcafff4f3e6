// Files of the next message in the playground: the button that adds them, and the list of them.
import { ActionIcon, Alert, CloseButton, FileButton, Loader, Text, Tooltip } from '@mantine/core';
import { IconAlertTriangle, IconPaperclip } from '@tabler/icons-react';
import { type RefObject, useRef } from 'react';
import { pickerFilter } from '../file-types';
import { fileSize } from './formats';
import type { Uploads } from './use-uploads';

interface AttachButtonProps {
  uploads: Uploads;
  button: RefObject<HTMLButtonElement | null>;
}

export function AttachButton({ uploads, button }: AttachButtonProps) {
  const pickAgain = useRef<() => void>(null);
  const add = (files: File[]) => {
    // Allows choosing the same file again after its removal.
    pickAgain.current?.();
    uploads.add(files);
  };
  return (
    <FileButton
      multiple
      accept={pickerFilter(uploads.settings.types)}
      onChange={add}
      resetRef={pickAgain}
      inputProps={{ 'aria-label': 'Files of the message' }}
    >
      {(props) => (
        <Tooltip label="Attach files">
          <ActionIcon {...props} ref={button} size={36} variant="subtle" color="gray" aria-label="Attach files">
            <IconPaperclip size={18} aria-hidden />
          </ActionIcon>
        </Tooltip>
      )}
    </FileButton>
  );
}

/** Files to be sent; `onRemoved` takes the focus of the button that is gone. */
export function PendingFiles({ uploads, onRemoved }: { uploads: Uploads; onRemoved: () => void }) {
  const count = uploads.uploads.length;
  return (
    <>
      <Rejected uploads={uploads} />
      <div role="status" className="visually-hidden">
        {uploads.isBusy ? 'Uploading…' : count > 0 && `${count} ${count === 1 ? 'file' : 'files'} attached`}
      </div>
      {count > 0 && (
        <ul className="attachments" aria-label="Files to send">
          {uploads.uploads.map(({ id, name, bytes, stored }) => (
            <li key={id} className="attachment" aria-busy={stored === undefined}>
              {stored === undefined && <Loader size={14} aria-hidden />}
              <Text size="xs" truncate title={name}>
                {name}
              </Text>
              <Text size="xs" c="dimmed" className="nowrap">
                {fileSize(bytes)}
              </Text>
              <CloseButton
                size="sm"
                aria-label={stored === undefined ? `Cancel the upload of ${name}` : `Remove ${name}`}
                onClick={() => {
                  uploads.remove(id);
                  onRemoved();
                }}
              />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Rejected({ uploads: { rejected, forgetRejected } }: { uploads: Uploads }) {
  if (rejected.length === 0) return null;
  return (
    <Alert
      color="red"
      variant="light"
      role="alert"
      icon={<IconAlertTriangle aria-hidden />}
      title="Not attached"
      withCloseButton
      closeButtonLabel="Close"
      onClose={forgetRejected}
    >
      {rejected.map(({ name, reason }, index) => (
        <Text key={index} size="sm" className="break">
          <b>{name}</b>: {reason}
        </Text>
      ))}
    </Alert>
  );
}
