// Lead form: the form that an agent starts with, names of fields, and validation before saving.
import type { LeadField, LeadForm } from '../../api/types';
import { slugOf } from '../../slug';
import { validateWebAddress } from './web-address';

export const FIELDS_MAX = 8;
const OPTIONS_MAX = 20;
const NAME_CHARS_MAX = 40;
/** Key of the consent in a lead. */
const CONSENT = 'consent';

export const NEW_FORM: LeadForm = {
  title: 'Contact us',
  text: 'Leave your contact details, and we will get back to you.',
  consent: { text: 'I agree that you contact me about my request.' },
  fields: [
    { name: 'name', label: 'Name', type: 'name', required: false },
    { name: 'email', label: 'Email', type: 'email', required: true },
  ],
  trigger: 'after-replies',
  afterReplies: 3,
};

/** Returns a free name for a label: “Company size” becomes `companySize`. */
export function proposeName(label: string, taken: string[]): string {
  const own = slugOf(label)
    .replace(/^[0-9-]+/, '')
    .replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  for (let number = 1; ; number += 1) {
    const suffix = number === 1 ? '' : String(number);
    const name = (own || 'field').slice(0, NAME_CHARS_MAX - suffix.length) + suffix;
    if (name !== CONSENT && !taken.includes(name)) return name;
  }
}

type FieldErrors = Partial<Record<keyof LeadField, string | undefined>>;

export function validateField(field: LeadField, fields: LeadField[]): FieldErrors {
  return {
    label: field.label.trim() === '' ? 'A field needs a label' : undefined,
    name: validateName(field.name, fields),
    options: field.type === 'select' ? validateOptions(field.options ?? []) : undefined,
  };
}

function validateName(name: string, fields: LeadField[]): string | undefined {
  if (!/^[a-z][a-zA-Z0-9_]{0,39}$/.test(name)) return 'Use 1 to 40 letters, digits and _, starting with a–z';
  if (name === CONSENT) return 'This name is reserved';
  return fields.filter((field) => field.name === name).length > 1 ? 'Another field has this name' : undefined;
}

function validateOptions(options: string[]): string | undefined {
  if (options.length === 0) return 'Enter at least one option';
  if (options.length > OPTIONS_MAX) return `A list has at most ${OPTIONS_MAX} options`;
  return new Set(options).size < options.length ? 'An option occurs twice' : undefined;
}

/** Returns the reason why the form cannot be saved. */
export function validateLeadForm({ consent, fields }: LeadForm): string | undefined {
  if (consent.text.trim() === '') return 'the lead form needs a consent text';
  if (validateWebAddress(consent.link ?? '') !== undefined) return 'the privacy link of the lead form is invalid';
  if (fields.length === 0) return 'the lead form needs a field';
  const invalid = fields.findIndex((field) =>
    Object.values(validateField(field, fields)).some((error) => error !== undefined),
  );
  return invalid < 0 ? undefined : `field ${invalid + 1} of the lead form is incomplete`;
}
