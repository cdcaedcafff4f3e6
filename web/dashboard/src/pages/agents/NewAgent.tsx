// Dialog that creates an agent from a template.
import { Radio, SimpleGrid, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { create } from '../../api/resources';
import { useSession } from '../../api/session';
import { CreateResource } from '../../components/CreateResource';
import { TEMPLATES } from './templates';

export function NewAgent({ takenSlugs, onClose }: { takenSlugs: string[]; onClose: () => void }) {
  const org = useSession().organization.id;
  const navigate = useNavigate();
  const client = useQueryClient();
  const [template, setTemplate] = useState(TEMPLATES[0].value);
  const make = async (names: { name: string; slug: string }) => {
    const { fields } = TEMPLATES.find(({ value }) => value === template) ?? TEMPLATES[0];
    // New agents are drafts, so that visitors do not meet unfinished ones.
    const agent = await create(org, 'agents', { ...fields, ...names, status: 'draft' });
    await client.invalidateQueries({ queryKey: [org, 'agents'] });
    await navigate({ to: '/agents/$id', params: { id: agent.id }, search: { tab: 'instructions' } });
  };
  return (
    <CreateResource
      title="New agent"
      placeholder="Support"
      fallbackSlug="agent"
      takenSlugs={takenSlugs}
      create={make}
      onClose={onClose}
    >
      <Radio.Group label="Start from" value={template} onChange={setTemplate}>
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" mt={4}>
          {TEMPLATES.map(({ value, label, about }) => (
            <Radio.Card key={value} value={value} p="sm" radius="md" className="choice" aria-label={label}>
              <Text size="sm" fw={550}>
                {label}
              </Text>
              <Text size="xs" c="dimmed">
                {about}
              </Text>
            </Radio.Card>
          ))}
        </SimpleGrid>
      </Radio.Group>
    </CreateResource>
  );
}
