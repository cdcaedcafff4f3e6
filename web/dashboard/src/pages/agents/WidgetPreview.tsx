// Preview of the real widget in a frame with the settings of the form, saved or not.
import { Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect, useRef, useState } from 'react';
import type { AgentFields } from '../../api/types';
import { FILES_DEFAULT } from '../../file-types';
import { DISCLOSURE_DEFAULT } from './themes';

/** Wide enough for the largest window; on narrower pages the widget would cover everything. */
const PAGE_WIDTH = 540;
const PAGE_HEIGHT = 860;

type View = 'open' | 'closed' | 'offline';

export function WidgetPreview({ agent }: { agent: AgentFields }) {
  const [view, setView] = useState<View>('open');
  const { ref, width } = useElementSize();
  const frame = useRef<HTMLIFrameElement>(null);
  const [isLoaded, setLoaded] = useState(false);
  useEffect(() => {
    if (!isLoaded) return;
    const form = { answer: answerFor(agent, view === 'offline'), isOpen: view !== 'closed' };
    // The frame has no origin to name. It only receives what every visitor receives.
    frame.current?.contentWindow?.postMessage(form, '*');
  }, [agent, view, isLoaded]);
  const scale = width / PAGE_WIDTH;
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
      <div ref={ref} className="preview" style={{ height: PAGE_HEIGHT * scale }}>
        <iframe
          ref={frame}
          title="Preview of the widget"
          src="/dashboard/preview"
          sandbox="allow-scripts"
          inert
          width={PAGE_WIDTH}
          height={PAGE_HEIGHT}
          style={{ transform: `scale(${scale})` }}
          onLoad={() => setLoaded(true)}
        />
      </div>
    </Stack>
  );
}

/** Response that the service would give to a widget of this agent if the form were saved. */
function answerFor(agent: AgentFields, isOffline: boolean) {
  const { name, description, welcomeMessage, placeholderText, theme, features, limits } = agent;
  const { enabled, text, privacyLink } = agent.disclosure ?? DISCLOSURE_DEFAULT;
  const notice = { disclosure: enabled, text, privacyLink };
  // The preview has its own buttons to open and close.
  const widget = { ...agent.widget, ...features, ...limits, autoOpen: false };
  if (isOffline) {
    const { offlineMessage, position, size, triggerText } = widget;
    return { theme, notice, offline: { name, offlineMessage, position, size, triggerText } };
  }
  const leadForm = features.enableLeadCapture && agent.leadForm ? { leadForm: agent.leadForm } : {};
  const files = features.enableFileUpload ? { files: agent.files ?? FILES_DEFAULT } : {};
  const texts = { name, description, welcomeMessage, placeholderText };
  return { theme, notice, configuration: { ...texts, widget, ...leadForm, ...files } };
}
