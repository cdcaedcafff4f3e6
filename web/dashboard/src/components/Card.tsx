// Titled section of a form.
import { Group, Paper, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

export function Card({
  title,
  about,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <Paper className="panel" p={{ base: 'md', xs: 'lg' }} component="section">
      <Group justify="space-between" align="flex-start" mb="md" wrap="nowrap">
        <div>
          <Title order={2}>{title}</Title>
          {about !== undefined && (
            <Text size="sm" c="dimmed" mt={2}>
              {about}
            </Text>
          )}
        </div>
        <div className="no-shrink">{actions}</div>
      </Group>
      <Stack>{children}</Stack>
    </Paper>
  );
}
