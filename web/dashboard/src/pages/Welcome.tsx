// Layout of the pages without a session: sign-in and one-time links.
import { Box, Center, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect } from 'react';
import logo from '../favicon.svg';

export function Welcome({ title, about, children }: { title: string; about: string; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Switchboard`;
  }, [title]);
  return (
    <Center mih="100vh" p="md" component="main">
      <Box w="100%" maw={400}>
        <Group gap="xs" justify="center" mb="lg">
          <img src={logo} width={32} height={32} alt="" />
          <Text fw={700} size="lg">
            Switchboard
          </Text>
        </Group>
        <Paper className="panel" p={{ base: 'lg', xs: 'xl' }} shadow="sm">
          <Stack gap={4} mb="lg">
            <Title order={1}>{title}</Title>
            <Text size="sm" c="dimmed">
              {about}
            </Text>
          </Stack>
          {children}
        </Paper>
      </Box>
    </Center>
  );
}
