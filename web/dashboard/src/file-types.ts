// Types of files that agents can accept, and the settings that an agent starts with.
import type { FileSettings, FileType } from './api/files';

interface NamedFileType {
  type: FileType;
  label: string;
  /** Endings of file names, because systems do not know all types. */
  endings: string[];
}

const OFFICE = 'application/vnd.openxmlformats-officedocument';

export const FILE_GROUPS: { label: string; types: NamedFileType[] }[] = [
  {
    label: 'Pictures',
    types: [
      { type: 'image/png', label: 'PNG', endings: ['.png'] },
      { type: 'image/jpeg', label: 'JPEG', endings: ['.jpg', '.jpeg'] },
      { type: 'image/webp', label: 'WebP', endings: ['.webp'] },
      { type: 'image/gif', label: 'GIF', endings: ['.gif'] },
    ],
  },
  {
    label: 'Texts',
    types: [
      { type: 'text/plain', label: 'Plain text', endings: ['.txt', '.log'] },
      { type: 'text/markdown', label: 'Markdown', endings: ['.md'] },
      { type: 'text/csv', label: 'CSV', endings: ['.csv', '.tsv'] },
      { type: 'application/json', label: 'JSON', endings: ['.json'] },
    ],
  },
  {
    label: 'Documents',
    types: [
      { type: 'application/pdf', label: 'PDF', endings: ['.pdf'] },
      { type: `${OFFICE}.wordprocessingml.document`, label: 'Word', endings: ['.docx'] },
      { type: `${OFFICE}.spreadsheetml.sheet`, label: 'Excel', endings: ['.xlsx'] },
    ],
  },
];

const ALL = FILE_GROUPS.flatMap(({ types }) => types);

export const FILES_DEFAULT: FileSettings = { maxBytes: 10_000_000, types: ALL.map(({ type }) => type) };

/** Returns these types in the order of the groups. */
export function inOrder(types: string[]): FileType[] {
  return ALL.map(({ type }) => type).filter((type) => types.includes(type));
}

export function typeLabel(type: FileType): string {
  return ALL.find((known) => known.type === type)?.label ?? type;
}

/** Returns the filter of a file picker. */
export function pickerFilter(types: FileType[]): string {
  return ALL.filter(({ type }) => types.includes(type))
    .flatMap(({ type, endings }) => [type, ...endings])
    .join(',');
}
