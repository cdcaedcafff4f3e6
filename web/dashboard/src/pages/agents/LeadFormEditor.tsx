// Lead form: texts, consent, fields and the moment at which it appears.
import { Button, Group, NumberInput, Select, SimpleGrid, Switch, Text, Textarea, TextInput } from '@mantine/core';
import type { LeadForm } from '../../api/types';
import { Card } from '../../components/Card';
import { LeadFields } from './LeadFields';
import { LeadFormPreview } from './LeadFormPreview';
import { NEW_FORM, validateLeadForm } from './lead-form';
import type { SectionProps } from './section';
import { validateWebAddress } from './web-address';

const TRIGGERS: Record<LeadForm['trigger'], { label: string; about: string }> = {
  'before-first-message': {
    label: 'Before the first message',
    about: 'Visitors fill in the form before they can write.',
  },
  'after-replies': { label: 'After a few replies', about: 'Visitors can write without filling it in.' },
  tool: {
    label: 'When the agent decides',
    about: 'The agent shows the form when a visitor wants to be contacted. Say when in its instructions.',
  },
};

export function LeadFormEditor({ form, isReadOnly, fieldError }: SectionProps) {
  const { features, leadForm, theme } = form.fields;
  const isOn = features.enableLeadCapture;
  // An invalid form stays visible, because it keeps the agent from being saved.
  const isShown = leadForm && (isOn || validateLeadForm(leadForm) !== undefined);
  return (
    <Card
      title="Lead form"
      about="Asks visitors for contact details. The answers are on the Leads page and in the conversation."
    >
      <Switch
        label="Ask for contact details"
        checked={isOn}
        onChange={({ currentTarget: { checked } }) =>
          form.set({
            features: { ...features, enableLeadCapture: checked },
            ...(checked && !leadForm && { leadForm: NEW_FORM }),
          })
        }
      />
      {isOn && !leadForm && (
        <Group>
          <Text size="sm">Nothing is asked until there is a form.</Text>
          {!isReadOnly && (
            <Button variant="default" onClick={() => form.set({ leadForm: NEW_FORM })}>
              Add a form
            </Button>
          )}
        </Group>
      )}
      {isShown && (
        <>
          <Texts form={leadForm} fieldError={fieldError} onChange={(leadForm) => form.set({ leadForm })} />
          <LeadFields
            fields={leadForm.fields}
            saved={form.base.leadForm?.fields ?? []}
            isReadOnly={isReadOnly}
            fieldError={fieldError}
            onChange={(fields) => form.set({ leadForm: { ...leadForm, fields } })}
          />
          <LeadFormPreview form={leadForm} theme={theme} />
        </>
      )}
    </Card>
  );
}

interface TextsProps {
  form: LeadForm;
  fieldError: SectionProps['fieldError'];
  onChange: (form: LeadForm) => void;
}

function Texts({ form, fieldError, onChange }: TextsProps) {
  const { consent, trigger } = form;
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Select
          label="Show the form"
          data={Object.entries(TRIGGERS).map(([value, { label }]) => ({ value, label }))}
          description={TRIGGERS[trigger].about}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          value={trigger}
          error={fieldError('leadForm.trigger')}
          onChange={(value) => {
            const trigger = value as LeadForm['trigger'];
            const afterReplies = trigger === 'after-replies' ? (form.afterReplies ?? NEW_FORM.afterReplies) : null;
            onChange({ ...form, trigger, afterReplies });
          }}
        />
        {trigger === 'after-replies' && (
          <NumberInput
            label="Replies before the form"
            min={1}
            max={20}
            clampBehavior="strict"
            allowDecimal={false}
            allowNegative={false}
            value={form.afterReplies ?? ''}
            error={fieldError('leadForm.afterReplies')}
            onChange={(value) => typeof value === 'number' && onChange({ ...form, afterReplies: value })}
          />
        )}
      </SimpleGrid>
      <TextInput
        label="Title"
        maxLength={200}
        value={form.title}
        error={fieldError('leadForm.title')}
        onChange={(event) => onChange({ ...form, title: event.currentTarget.value })}
      />
      <Textarea
        label="Text"
        autosize
        minRows={2}
        maxLength={2000}
        value={form.text}
        error={fieldError('leadForm.text')}
        onChange={(event) => onChange({ ...form, text: event.currentTarget.value })}
      />
      <Textarea
        label="Consent text"
        description="Visitors must agree to it. It is stored with each lead."
        autosize
        maxLength={2000}
        value={consent.text}
        error={consent.text.trim() === '' ? 'Enter what visitors agree to' : fieldError('leadForm.consent.text')}
        onChange={(event) => onChange({ ...form, consent: { ...consent, text: event.currentTarget.value } })}
      />
      <TextInput
        label="Privacy policy link"
        placeholder="https://"
        value={consent.link ?? ''}
        error={validateWebAddress(consent.link ?? '') ?? fieldError('leadForm.consent.link')}
        onChange={(event) => onChange({ ...form, consent: { ...consent, link: event.currentTarget.value || null } })}
      />
    </>
  );
}
