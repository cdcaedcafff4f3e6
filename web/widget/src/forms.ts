// Forms of the widget: email address and rating, each shown once.

import { h, icon, icons, set, webLink } from "./dom.ts";
import { fill, type Language } from "./texts.ts";

const STARS = 5;
/** Like the service, requires a dot in the domain, unlike browsers. */
const DOTTED = /@.+\../;

/** Catches obvious mistakes; the service decides which addresses are valid. */
export function isAddress(input: HTMLInputElement): boolean {
  return DOTTED.test(input.value.trim()) && input.checkValidity();
}

/** Email form; `save` fails if the service rejects the address. */
export class EmailForm {
  readonly element: HTMLFormElement;
  private readonly input: HTMLInputElement;
  private readonly note = h("p", { class: "bad", id: "email-note", role: "alert" });
  private readonly parts: HTMLElement[];
  private readonly privacy = h("span");

  constructor(
    private readonly language: Language,
    save: (email: string) => Promise<void>,
    skip: () => void,
  ) {
    const { texts } = language;
    this.input = h("input", {
      type: "email", autocomplete: "email", "aria-label": texts.emailLabel, placeholder: texts.emailLabel,
      "aria-describedby": "email-note", maxlength: 254, dir: "ltr",
    });
    const skipButton = h("button", { type: "button", class: "link" }, texts.emailSkip);
    const saveButton = h("button", { type: "submit", class: "filled" }, texts.emailSave);
    this.parts = [h("p", {}, texts.emailAsk), this.input, this.note, h("div", { class: "choices" }, saveButton, skipButton, this.privacy)];
    this.element = h("form", { class: "ask", novalidate: true }, ...this.parts);
    skipButton.onclick = skip;
    this.element.onsubmit = async (event) => {
      event.preventDefault();
      const email = this.input.value.trim();
      const refuse = () => {
        this.refuse(email);
        this.input.focus();
      };
      if (!isAddress(this.input)) return refuse();
      await save(email).then(() => this.thank(texts.emailThanks), refuse);
    };
  }

  configure(privacyLink: string): void {
    this.privacy.replaceChildren(webLink(privacyLink, this.language.texts.privacy) ?? "");
  }

  /** Asks again after the service rejected the address. */
  refuse(email: string): void {
    this.element.replaceChildren(...this.parts);
    this.input.value = email;
    this.note.textContent = this.language.texts.emailBad;
    set(this.input, { "aria-invalid": "true" });
  }

  private thank(text: string): void {
    this.element.replaceChildren(h("p", { tabindex: -1 }, text));
    (this.element.firstElementChild as HTMLElement).focus();
  }
}

/** Rating form: five stars, then an optional comment. */
export class RatingForm {
  readonly element = h("form", { class: "ask rating", novalidate: true });
  /** The visitor has just given a rating. */
  isThanking = false;
  private readonly stars: HTMLButtonElement[] = [];
  private readonly choice: HTMLElement;
  private readonly more: HTMLElement;
  private readonly question: HTMLElement;

  constructor(
    private readonly language: Language,
    rate: (rating: number) => Promise<void>,
    say: (feedback: string) => Promise<void>,
  ) {
    const { texts } = language;
    this.question = h("p", { id: "rate", tabindex: -1 }, texts.rateAsk);
    for (let number = 1; number <= STARS; number += 1) {
      const label = fill(texts.stars, { n: number });
      const star = h("button", { type: "button", class: "star", "aria-label": label, title: label, "aria-pressed": "false" }, icon(icons.star));
      star.onclick = () => void rate(number).then(() => this.show(number), () => undefined);
      this.stars.push(star);
    }
    const words = h("textarea", { rows: 2, "aria-label": texts.feedbackLabel, placeholder: texts.feedbackLabel, maxlength: 2000, dir: "auto" });
    const send = h("button", { type: "submit", class: "filled" }, texts.feedbackSend);
    this.more = h("div", { class: "more", hidden: true }, words, send);
    this.choice = h("div", { class: "stars", role: "group", "aria-labelledby": "rate" }, ...this.stars);
    this.element.append(this.question, this.choice, this.more);
    this.element.onsubmit = async (event) => {
      event.preventDefault();
      const text = words.value.trim();
      if (text) await say(text).then(() => this.thank(), () => undefined);
    };
  }

  /** Shows a given rating and asks for a comment; null asks for a rating. */
  show(rating: number | null): void {
    this.isThanking = rating !== null;
    if (!this.isThanking) this.element.reset();
    this.choice.hidden = false;
    this.stars.forEach((star, at) => {
      star.classList.toggle("lit", at < (rating ?? 0));
      set(star, { "aria-pressed": at + 1 === rating ? "true" : "false" });
    });
    this.more.hidden = rating === null;
    this.question.textContent = rating === null ? this.language.texts.rateAsk : this.language.texts.rateThanks;
  }

  private thank(): void {
    this.choice.hidden = this.more.hidden = true;
    this.question.focus();
  }
}
