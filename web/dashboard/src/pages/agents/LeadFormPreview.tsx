// Preview of a lead form with the theme of the widget.
import { Input } from '@mantine/core';
import type { CSSProperties } from 'react';
import type { LeadField, LeadForm, Theme } from '../../api/types';
import { textColorOn } from './colors';

export function LeadFormPreview({ form, theme }: { form: LeadForm; theme: Theme }) {
  const style = {
    '--ground': theme.backgroundColor,
    '--ink': theme.textColor,
    '--input': theme.inputBackgroundColor,
    '--button': theme.primaryColor,
    '--button-ink': textColorOn(theme.primaryColor),
    '--corner': `min(${theme.borderRadius}, 24px)`,
    fontFamily: theme.fontFamily,
  } as CSSProperties;
  return (
    <Input.Wrapper label="Preview of the form" labelElement="div">
      <div className="lead-preview" style={style} inert>
        {form.title !== '' && <strong>{form.title}</strong>}
        {form.text !== '' && <p className="text-block">{form.text}</p>}
        {form.fields.map((field, index) => (
          <div key={index}>
            {field.label}
            {field.required && ' *'}
            <Control field={field} />
          </div>
        ))}
        <div className="lead-preview-consent">
          <input type="checkbox" />
          <span className="text-block">
            {form.consent.text} {form.consent.link && <u>Privacy policy</u>}
          </span>
        </div>
        <span className="lead-preview-send">Send</span>
      </div>
    </Input.Wrapper>
  );
}

function Control({ field }: { field: LeadField }) {
  if (field.type === 'text') return <textarea rows={2} />;
  if (field.type !== 'select') return <input />;
  return (
    <select>
      <option />
      {field.options?.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
}
