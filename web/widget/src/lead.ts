// Lead form: contact data that an organization asks visitors for.

import type { Entry } from "./conversation.ts";
import { h, set, webLink } from "./dom.ts";
import { isAddress } from "./forms.ts";
import { fields, textOf } from "./settings.ts";
import type { Language } from "./texts.ts";

interface Field {
  name: string;
  label: string;
  type: string;
  required: boolean;
  options: string[];
}

interface Form {
  title: string;
  text: string;
  consent: string;
  link: string;
  fields: Field[];
  trigger: string;
  afterReplies: number;
  /** Sent back, so that the consent that is stored is the one that was shown. */
  version: string;
}

/** A form that is to be shown. */
export interface DueForm {
  form: Form;
  /** No message can be written before the form is answered. */
  isFirst: boolean;
  canSkip: boolean;
  /** Remembered once the visitor skips the form. */
  skipKey: string;
}

interface Row {
  name: string;
  type: string;
  input: HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;
  note: HTMLElement;
}

type Values = Record<string, string>;

/** Attributes of the one-line inputs. */
const INPUTS: Record<string, Record<string, string>> = {
  name: { type: "text", autocomplete: "name", dir: "auto" },
  email: { type: "email", autocomplete: "email", inputmode: "email", dir: "ltr" },
  phone: { type: "tel", autocomplete: "tel", inputmode: "tel", dir: "ltr" },
  company: { type: "text", autocomplete: "organization", dir: "auto" },
};
const CONSENT = "consent";
export const VERSION = "formVersion";

/** Returns the form that the service sent; null if it has no fields or no consent text. */
function parseForm(value: unknown): Form | null {
  const form = fields(value);
  const consent = fields(form.consent);
  const all = Array.isArray(form.fields) ? form.fields.map(fields) : [];
  if (all.length === 0 || !textOf(consent.text)) return null;
  return {
    title: textOf(form.title),
    text: textOf(form.text),
    consent: textOf(consent.text),
    link: textOf(consent.link),
    fields: all.map(({ name, label, type, required, options }) => ({
      name: textOf(name),
      label: textOf(label) || textOf(name),
      type: textOf(type),
      required: required === true,
      options: Array.isArray(options) ? options.map(textOf) : [],
    })),
    trigger: textOf(form.trigger),
    afterReplies: Number(form.afterReplies) || 1,
    version: textOf(form.version),
  };
}

/** Returns whether the lead form asks for the email address too. */
export function asksForEmail(configured: unknown): boolean {
  return parseForm(configured)?.fields.some(({ type }) => type === "email") ?? false;
}

/** Returns the form that is due in a conversation; `answer` is `given` or the key of the form that was skipped. */
export function findDueForm(configured: unknown, entries: readonly Entry[], answer: string | null): DueForm | null {
  const form = parseForm(configured);
  if (!form || answer === "given") return null;
  const canSkip = !form.fields.some(({ required }) => required);
  let due: DueForm | null = { form, isFirst: false, canSkip, skipKey: "skipped" };
  if (form.trigger === "before-first-message") {
    const isFirst = entries.every(({ state }) => state === "unsent");
    due = isFirst ? { ...due, isFirst } : null;
  } else if (form.trigger === "after-replies") {
    const replies = entries.filter(({ role, state }) => role === "assistant" && state === "final");
    if (replies.length < form.afterReplies) due = null;
  } else {
    // The agent may show its form again after the visitor skipped it. The service accepts the current form only.
    const entry = entries.filter(({ cards }) => fields(cards).type === "lead-form").pop();
    due = entry && form.trigger === "tool" ? { ...due, skipKey: entry.id ?? "" } : null;
  }
  return due?.skipKey === answer ? null : due;
}

export class LeadForm {
  readonly element = h("form", { class: "ask lead", novalidate: true });
  /** The visitor has just submitted the form. */
  isThanking = false;
  private due: DueForm | null = null;
  /** Content that is drawn; typed values survive as long as it stays the same. */
  private drawn = "";
  private rows: Row[] = [];
  private readonly note = h("p", { class: "bad", role: "alert" });
  private isSaving = false;
  private refusal: { values: Values; param: string } | null = null;

  constructor(
    private readonly language: Language,
    private readonly save: (values: Values, version: string) => Promise<void>,
    private readonly skip: (key: string) => void,
    /** Reads the form again. */
    private readonly renew: () => void,
  ) {
    this.element.onsubmit = (event) => {
      event.preventDefault();
      void this.submit();
    };
  }

  show(due: DueForm, privacyLink: string): void {
    this.due = due;
    this.isThanking = false;
    const content = JSON.stringify([due.form, due.canSkip, privacyLink]);
    if (content !== this.drawn) this.draw(due, privacyLink);
    this.drawn = content;
    const refusal = this.refusal;
    if (!refusal) return;
    this.refusal = null;
    for (const { name, type, input } of this.rows) {
      if (type !== CONSENT) input.value = refusal.values[name] ?? "";
      else (input as HTMLInputElement).checked = !/consent|Version$/.test(refusal.param);
    }
    this.fail(refusal.param);
  }

  /** Asks again, once the form is shown, after the service rejected what the visitor had entered. */
  refuse(values: Values, param: string): void {
    this.refusal = { values, param };
    this.reset();
  }

  thank(): void {
    const thanks = h("p", { tabindex: -1 }, this.language.texts.leadThanks);
    this.reset();
    this.isThanking = true;
    this.element.replaceChildren(thanks);
    thanks.focus();
  }

  /** Forgets what was entered. */
  reset(): void {
    this.isThanking = false;
    this.drawn = "";
  }

  /** Focuses the first field with a mistake, otherwise the first one. */
  focus(): void {
    (this.rows.find(({ input }) => input.hasAttribute("aria-invalid")) ?? this.rows[0])?.input.focus();
  }

  private draw({ form, canSkip }: DueForm, privacyLink: string): void {
    const { texts } = this.language;
    this.rows = [];
    this.note.textContent = "";
    const parts = form.fields.map((field, at) => {
      const row = this.row(field.name, field.type, at, createInput(field, texts.leadChoose));
      set(row.input, { required: field.required });
      const mark = field.required && h("span", { class: "mark", "aria-hidden": "true" }, "*");
      return h("div", {}, h("label", { for: row.input.id, dir: "auto" }, field.label, mark), row.input, row.note);
    });
    const box = h("input", { type: "checkbox", required: true });
    const consent = this.row(CONSENT, CONSENT, form.fields.length, box);
    const link = webLink(form.link || privacyLink, texts.privacy);
    const statement = h("div", {}, h("label", { for: box.id, dir: "auto" }, form.consent), " ", link);
    const submit = h("button", { type: "submit", class: "filled" }, texts.leadSubmit);
    const skip = h("button", { type: "button", class: "link" }, texts.leadSkip);
    skip.onclick = () => this.skip(this.due?.skipKey ?? "");
    set(this.element, { "aria-label": form.title || texts.leadTitle });
    this.element.replaceChildren(
      ...(form.title ? [h("h3", { dir: "auto" }, form.title)] : []),
      ...(form.text ? [h("p", { dir: "auto" }, form.text)] : []),
      ...parts,
      h("div", { class: "agree" }, box, statement),
      consent.note,
      this.note,
      h("div", { class: "choices" }, submit, canSkip && skip),
    );
  }

  private row(name: string, type: string, at: number, input: Row["input"]): Row {
    const note = h("p", { class: "bad", id: `lead-${at}-note`, role: "alert" });
    set(input, { id: `lead-${at}`, "aria-describedby": note.id });
    const row = { name, type, input, note };
    this.rows.push(row);
    return row;
  }

  private async submit(): Promise<void> {
    if (this.isSaving) return;
    const values: Values = {};
    for (const row of this.rows) {
      const value = row.input.value.trim();
      if (value && row.type !== CONSENT) values[row.name] = value;
      this.mark(row, this.mistake(row));
    }
    this.note.textContent = "";
    if (this.rows.some(({ input }) => input.hasAttribute("aria-invalid"))) return this.focus();
    this.isSaving = true;
    try {
      await this.save(values, this.due?.form.version ?? "");
    } catch (error) {
      const param = textOf(fields(error).param);
      this.fail(param);
      this.focus();
      if (param === "lead" || param === `lead.${VERSION}`) {
        this.refuse(values, param);
        this.renew();
      }
    } finally {
      this.isSaving = false;
    }
  }

  /** Returns the note for an obvious mistake, or an empty text; the service checks the rest. */
  private mistake({ type, input }: Row): string {
    const { texts } = this.language;
    if (type === CONSENT) return input.validity.valueMissing ? texts.leadAgree : "";
    if (!input.value.trim()) return input.required ? texts.leadRequired : "";
    return type === "email" && !isAddress(input as HTMLInputElement) ? texts.emailBad : "";
  }

  /** Shows an error of the service beside the field that it names, or below all. */
  private fail(param: string): void {
    const { texts } = this.language;
    const row = this.rows.find(({ name }) => param === `lead.${name}`);
    if (!row) this.note.textContent = texts.leadFailed;
    else if (row.type === CONSENT) this.mark(row, texts.leadAgree);
    else this.mark(row, row.type === "email" ? texts.emailBad : texts.leadBad);
  }

  private mark({ input, note }: Row, mistake: string): void {
    note.textContent = mistake;
    set(input, { "aria-invalid": mistake ? "true" : null });
  }
}

function createInput({ type, options }: Field, choose: string): Row["input"] {
  if (type === "text") return h("textarea", { rows: 3, maxlength: 2000, dir: "auto" });
  if (type !== "select") return h("input", { ...(INPUTS[type] ?? { type: "text", dir: "auto" }), maxlength: 200 });
  return h("select", {}, h("option", { value: "" }, choose), ...options.map((option) => h("option", { value: option }, option)));
}
