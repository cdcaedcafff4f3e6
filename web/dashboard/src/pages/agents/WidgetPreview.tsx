// A faithful drawing of the widget: every field of the theme and of its settings has the effect that it has on a page.
import { Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { IconMessageCircle, IconSend2, IconX } from '@tabler/icons-react';
import { type CSSProperties, useState } from 'react';
import type { AgentFields } from '../../api/types';
import { inkOn } from './colors';
import './preview.css';

const WIDTHS = { small: 270, medium: 310, large: 350 } as const;
const HEIGHTS = { small: 360, medium: 410, large: 460 } as const;

type View = 'open' | 'closed' | 'offline';

export function WidgetPreview({ agent }: { agent: AgentFields }) {
  const [view, setView] = useState<View>('open');
  const [vertical, horizontal] = agent.widget.position.split('-') as ['bottom' | 'top', 'left' | 'right'];
  const place: CSSProperties = {
    justifyContent: vertical === 'bottom' ? 'flex-end' : 'flex-start',
    alignItems: horizontal === 'right' ? 'flex-end' : 'flex-start',
    flexDirection: vertical === 'bottom' ? 'column' : 'column-reverse',
  };
  if (vertical === 'top') place.justifyContent = 'flex-end';
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <SegmentedControl
          size="xs"
          aria-label="State of the preview"
          value={view}
          onChange={(view) => setView(view as View)}
          data={[
            { value: 'open', label: 'Open' },
            { value: 'closed', label: 'Closed' },
            { value: 'offline', label: 'Offline' },
          ]}
        />
        <Text size="xs" c="dimmed">
          Follows the form
        </Text>
      </Group>
      <div className="preview-page" role="img" aria-label={`Preview of the widget, ${view}`}>
        <div className="preview-place" style={place} inert>
          {view !== 'closed' && <Window agent={agent} isOffline={view === 'offline'} />}
          <Trigger agent={agent} isOpen={view !== 'closed'} />
        </div>
      </div>
    </Stack>
  );
}

function Trigger({ agent, isOpen }: { agent: AgentFields; isOpen: boolean }) {
  const color = agent.theme.primaryColor;
  return (
    <div
      className="preview-trigger"
      data-testid="preview-trigger"
      style={{ background: color, color: inkOn(color), fontFamily: agent.theme.fontFamily }}
    >
      {isOpen ? <IconX size={20} /> : <IconMessageCircle size={20} />}
      {!isOpen && agent.widget.triggerText !== '' && <span>{agent.widget.triggerText}</span>}
    </div>
  );
}

function Window({ agent, isOffline }: { agent: AgentFields; isOffline: boolean }) {
  const { theme, widget } = agent;
  const style: CSSProperties = {
    width: WIDTHS[widget.size],
    height: HEIGHTS[widget.size],
    background: theme.backgroundColor,
    color: theme.textColor,
    borderRadius: theme.borderRadius,
    fontFamily: theme.fontFamily,
  };
  return (
    <div className="preview-window" data-testid="preview-window" style={style}>
      <div
        className="preview-header"
        data-testid="preview-header"
        style={{ background: theme.chatHeaderColor, color: inkOn(theme.chatHeaderColor) }}
      >
        {widget.showAvatar && <Face agent={agent} />}
        <b>{agent.name}</b>
      </div>
      {isOffline ? <div className="preview-offline">{widget.offlineMessage}</div> : <Conversation agent={agent} />}
      {!isOffline && <Input agent={agent} />}
      {widget.showPoweredBy && <div className="preview-powered">Powered by Switchboard</div>}
    </div>
  );
}

function Face({ agent }: { agent: AgentFields }) {
  const { primaryColor } = agent.theme;
  return (
    <span className="preview-face" style={{ background: primaryColor, color: inkOn(primaryColor) }}>
      {agent.name.trim().charAt(0).toUpperCase()}
    </span>
  );
}

function Conversation({ agent }: { agent: AgentFields }) {
  const bullets = agent.features.enableMarkdown;
  return (
    <div className="preview-messages">
      <Bubble agent={agent} isVisitor={false} time="10:24">
        {agent.welcomeMessage}
      </Bubble>
      <Bubble agent={agent} isVisitor time="10:25">
        What can you do for me?
      </Bubble>
      <Bubble agent={agent} isVisitor={false} time="10:25">
        {bullets ? (
          <>
            I can <b>answer</b> and <b>suggest</b>. Just ask!
          </>
        ) : (
          'I can **answer** and **suggest**. Just ask!'
        )}
      </Bubble>
      {agent.features.enableRating && <div className="preview-rating">★ ★ ★ ★ ☆</div>}
    </div>
  );
}

function Bubble({
  agent,
  isVisitor,
  time,
  children,
}: {
  agent: AgentFields;
  isVisitor: boolean;
  time: string;
  children: React.ReactNode;
}) {
  const { theme, widget } = agent;
  const style: CSSProperties = isVisitor
    ? { background: theme.userMessageColor, color: inkOn(theme.userMessageColor), borderRadius: theme.borderRadius }
    : { background: theme.botMessageColor, borderRadius: theme.borderRadius };
  return (
    <div className="preview-line" data-visitor={isVisitor}>
      {!isVisitor && widget.showAvatar && <Face agent={agent} />}
      <div className="preview-column">
        <div className="preview-bubble" data-testid={isVisitor ? 'preview-user' : 'preview-bot'} style={style}>
          {children}
        </div>
        {widget.showTimestamp && <span className="preview-time">{time}</span>}
      </div>
    </div>
  );
}

function Input({ agent }: { agent: AgentFields }) {
  const { theme } = agent;
  return (
    <div className="preview-form">
      <div
        className="preview-input"
        data-testid="preview-input"
        style={{ background: theme.inputBackgroundColor, borderRadius: theme.borderRadius }}
      >
        {agent.placeholderText}
      </div>
      <span
        className="preview-send"
        data-testid="preview-send"
        style={{
          background: theme.sendButtonColor,
          color: inkOn(theme.sendButtonColor),
          borderRadius: theme.borderRadius,
        }}
      >
        <IconSend2 size={16} />
      </span>
    </div>
  );
}
