// Files of a message: thumbnails of pictures, and rows with a download.
import { Text } from '@mantine/core';
import { IconDownload, IconFileOff, IconFileSpreadsheet, IconFileText, IconFileTypePdf } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type Attachment, filePath, storedQuery } from '../api/files';
import { useSession } from '../api/session';
import { fileSize } from './formats';

export function Attachments({ files = [] }: { files?: Attachment[] | undefined }) {
  if (files.length === 0) return null;
  return (
    <ul className="attachments" aria-label="Files">
      {files.map((file) => (
        <li key={file.fileId}>
          <AttachedFile file={file} />
        </li>
      ))}
    </ul>
  );
}

function AttachedFile({ file }: { file: Attachment }) {
  const { fileId, name, mimeType, bytes } = file;
  const org = useSession().organization.id;
  const [isBroken, setBroken] = useState(false);
  const isPicture = mimeType.startsWith('image/') && !isBroken;
  const isStored = useQuery({ ...storedQuery(org, fileId), enabled: !isPicture }).data;
  if (isStored === false) {
    return (
      <div className="attachment">
        <IconFileOff size={20} stroke={1.5} aria-hidden className="no-shrink" />
        <Names name={name} about="no longer stored" />
      </div>
    );
  }
  const path = filePath(org, fileId);
  if (isPicture) {
    return (
      <a href={path} download={name} className="attachment-picture" aria-label={`Download ${name}`} title={name}>
        <img src={path} alt={name} loading="lazy" onError={() => setBroken(true)} />
      </a>
    );
  }
  return (
    <a href={path} download={name} className="attachment">
      <span className="visually-hidden">Download </span>
      <FileIcon mimeType={mimeType} />
      <Names name={name} about={fileSize(bytes)} />
      <IconDownload size={16} aria-hidden className="no-shrink" />
    </a>
  );
}

function Names({ name, about }: { name: string; about: string }) {
  return (
    <span className="grow">
      <Text span size="sm" className="break" display="block">
        {name}
      </Text>
      <Text span size="xs" c="dimmed" display="block">
        {about}
      </Text>
    </span>
  );
}

function FileIcon({ mimeType }: Pick<Attachment, 'mimeType'>) {
  const isTable = mimeType === 'text/csv' || mimeType.endsWith('.sheet');
  const Icon = mimeType === 'application/pdf' ? IconFileTypePdf : isTable ? IconFileSpreadsheet : IconFileText;
  return <Icon size={20} stroke={1.5} aria-hidden className="no-shrink" />;
}
