// The lead of a conversation, and its values with the labels of the form.
import type { AgentItem, CapturedLead } from '../../api/types';
import { fieldName } from '../../field-names';

export interface LeadValue {
  name: string;
  label: string;
  text: string;
}

/** Returns the lead of a conversation. Clients may have stored something else under its name. */
export function leadOf(metadata: Record<string, unknown>): CapturedLead | undefined {
  const lead = metadata['lead'] as Partial<CapturedLead> | null | undefined;
  const isLead = typeof lead?.capturedAt === 'string' && typeof lead.values === 'object';
  return isLead ? (lead as CapturedLead) : undefined;
}

/** Labels are those of the form; fields that it no longer has are shown by name, after the others. */
export function leadValues({ values }: CapturedLead, fields: AgentItem['leadFields'] = []): LeadValue[] {
  const labels = new Map(fields.map(({ name, label }) => [name, label]));
  const names = new Set([...labels.keys(), ...Object.keys(values)]);
  return [...names].flatMap((name) => {
    if (!Object.hasOwn(values, name)) return [];
    const value = values[name];
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return { name, label: labels.get(name) ?? fieldName(name), text };
  });
}
