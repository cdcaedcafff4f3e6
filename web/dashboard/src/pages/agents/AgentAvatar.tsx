// Round initial of an agent in its own color.
import { Avatar } from '@mantine/core';
import type { Agent } from '../../api/types';
import { textColorOn } from './colors';

export function AgentAvatar({ agent, size = 36 }: { agent: Pick<Agent, 'name' | 'theme'>; size?: number }) {
  const color = agent.theme.primaryColor;
  return (
    <Avatar
      size={size}
      radius="xl"
      aria-hidden
      styles={{ placeholder: { background: color, color: textColorOn(color), fontWeight: 600 } }}
    >
      {agent.name.trim().charAt(0).toUpperCase()}
    </Avatar>
  );
}
