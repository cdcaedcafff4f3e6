// Widget features, file uploads, lead form, limits and auto-open.
import { NumberInput, SimpleGrid, Stack, Switch } from '@mantine/core';
import type { AgentFields, Features, WidgetSettings } from '../../api/types';
import { Card } from '../../components/Card';
import { FileUploads } from './FileUploads';
import { LeadFormEditor } from './LeadFormEditor';
import type { SectionProps } from './section';

const FEATURES: { field: keyof Features; label: string; about?: string }[] = [
  { field: 'enableMarkdown', label: 'Formatted replies', about: 'Render headings, lists, links and code.' },
  { field: 'enableRating', label: 'Rating', about: 'Visitors can rate a conversation from 1 to 5 and say why.' },
  { field: 'enableEmailCapture', label: 'Email form', about: 'Visitors can leave an email address.' },
];

export function Behavior(section: SectionProps) {
  const { form, fieldError } = section;
  const { features, limits, widget } = form.fields;
  const setLimits = (changes: Partial<AgentFields['limits']>) => form.set({ limits: { ...limits, ...changes } });
  const setWidget = (changes: Partial<WidgetSettings>) => form.set({ widget: { ...widget, ...changes } });
  return (
    <Stack>
      <Card title="Features">
        {FEATURES.map(({ field, label, about }) => (
          <Switch
            key={field}
            label={label}
            description={about}
            checked={features[field]}
            onChange={(event) => form.set({ features: { ...features, [field]: event.currentTarget.checked } })}
          />
        ))}
      </Card>
      <FileUploads {...section} />
      <LeadFormEditor {...section} />
      <Card title="Limits" about="Enforced by the service for each visitor.">
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <NumberInput
            label="Maximum message length"
            description="In characters."
            min={1}
            max={1_000_000}
            allowDecimal={false}
            allowNegative={false}
            thousandSeparator=","
            value={limits.maxMessageLength}
            error={fieldError('limits.maxMessageLength')}
            onChange={(value) => typeof value === 'number' && setLimits({ maxMessageLength: value })}
          />
          <NumberInput
            label="Messages per minute"
            description="Per visitor."
            min={1}
            max={100_000}
            allowDecimal={false}
            allowNegative={false}
            thousandSeparator=","
            value={limits.rateLimitPerMinute}
            error={fieldError('limits.rateLimitPerMinute')}
            onChange={(value) => typeof value === 'number' && setLimits({ rateLimitPerMinute: value })}
          />
        </SimpleGrid>
      </Card>
      <Card title="Auto-open">
        <Switch
          label="Open the widget automatically"
          description="Not on phones, where it would cover the page."
          checked={widget.autoOpen}
          onChange={(event) => setWidget({ autoOpen: event.currentTarget.checked })}
        />
        {widget.autoOpen && (
          <NumberInput
            label="Delay"
            suffix=" ms"
            maw={220}
            min={0}
            max={600_000}
            step={500}
            allowDecimal={false}
            allowNegative={false}
            thousandSeparator=","
            value={widget.autoOpenDelay}
            error={fieldError('widget.autoOpenDelay')}
            onChange={(value) => typeof value === 'number' && setWidget({ autoOpenDelay: value })}
          />
        )}
      </Card>
    </Stack>
  );
}
