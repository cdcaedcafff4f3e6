// Page header with title, description and actions.
import { Box, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect } from 'react';

interface PageProps {
  title: string;
  /** Way back, above the title. */
  trail?: ReactNode;
  about?: ReactNode;
  /** Badge beside the title. */
  mark?: ReactNode;
  actions?: ReactNode;
  /** Maximum width in pixels. */
  width?: number;
  children: ReactNode;
}

export function Page({ title, trail, about, mark, actions, width = 1240, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Switchboard`;
  }, [title]);
  return (
    <Stack gap="lg" maw={width} mx="auto">
      <Group justify="space-between" align="flex-start" gap="md">
        <Box flex={1} miw={220}>
          {trail}
          <Group gap="sm" wrap="wrap">
            <Title order={1} className="break">
              {title}
            </Title>
            {mark !== undefined && <div className="no-shrink">{mark}</div>}
          </Group>
          {about !== undefined && (
            <Text c="dimmed" size="sm" mt={4} maw={640} component="div">
              {about}
            </Text>
          )}
        </Box>
        {actions}
      </Group>
      {children}
    </Stack>
  );
}

export function LoadingRows({ rows = 4 }: { rows?: number }) {
  return (
    <Stack gap="xs" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <Skeleton key={row} h={52} radius="md" />
      ))}
    </Stack>
  );
}
