// Audit log of the organization.
import { Select } from '@mantine/core';
import { useState } from 'react';
import { Changes } from '../../components/AuditEntries';
import { Page } from '../../components/Page';

const KINDS = [
  { value: '', label: 'All resources' },
  { value: 'agent', label: 'Agents' },
  { value: 'team', label: 'Teams' },
  { value: 'key', label: 'API keys' },
  { value: 'provider', label: 'Providers' },
  { value: 'user', label: 'Members' },
  { value: 'conversation', label: 'Conversations' },
  { value: 'conversations', label: 'Exports' },
  { value: 'erasure', label: 'Erasures' },
  { value: 'organization', label: 'Organization' },
];

export function Audit() {
  const [kind, setKind] = useState('');
  return (
    <Page
      title="Audit log"
      about="Every change with its author and time. Secrets and texts are not recorded."
      actions={<Select aria-label="Show" w={160} data={KINDS} value={kind} onChange={(kind) => setKind(kind ?? '')} />}
    >
      <Changes key={kind} {...(kind !== '' && { kind })} />
    </Page>
  );
}
