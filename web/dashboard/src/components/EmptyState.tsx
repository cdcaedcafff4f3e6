// Placeholder of an empty list with a first action.
import { Paper, Stack, Text, ThemeIcon, Title } from '@mantine/core';
import type { Icon } from '@tabler/icons-react';
import type { ReactNode } from 'react';

export function EmptyState({
  icon: Icon,
  title,
  children,
  action,
}: {
  icon: Icon;
  title: string;
  children: ReactNode;
  action?: ReactNode;
}) {
  return (
    <Paper className="panel" p="xl" py={56}>
      <Stack align="center" gap="xs" ta="center">
        <ThemeIcon size={48} radius="xl" variant="light">
          <Icon size={24} stroke={1.6} aria-hidden />
        </ThemeIcon>
        <Title order={2} mt="xs">
          {title}
        </Title>
        <Text c="dimmed" size="sm" maw={440} mb="sm">
          {children}
        </Text>
        {action}
      </Stack>
    </Paper>
  );
}
