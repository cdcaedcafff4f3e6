// Texts of the widget. English is part of the script; other languages are loaded on demand.

import type { Settings } from "./settings.ts";

export const english = {
  open: "Open chat",
  close: "Close chat",
  conversation: "Conversation",
  anew: "New conversation",
  earlier: "Show earlier messages",
  latest: "Go to the latest message",
  label: "Your message",
  placeholder: "Type your message…",
  send: "Send message",
  stop: "Stop the reply",
  says: "{name} says",
  you: "You say",
  typing: "{name} is typing",
  working: "Looking something up…",
  reconnecting: "Connection lost. Trying again…",
  stopped: "Stopped",
  broken: "The reply was interrupted.",
  shortened: "The reply was shortened.",
  unsent: "Your message was not sent.",
  retry: "Try again",
  away: "We are away at the moment. Please try again later.",
  left: "{n} characters left",
  over: "{n} characters too many",
  slow: "You are sending messages too fast. You can continue in {n} s.",
  products: "Products",
  emailAsk: "Leave your email address so that we can get back to you.",
  emailLabel: "Email address",
  emailSave: "Save",
  emailSkip: "No thanks",
  emailBad: "Please check this email address.",
  emailThanks: "Thank you. We have your email address.",
  rateAsk: "How was this conversation?",
  stars: "{n} of 5 stars",
  feedbackLabel: "What could be better? (optional)",
  feedbackSend: "Send",
  rateThanks: "Thank you for your rating!",
  unread: "{n} unread",
  powered: "Powered by {name}",
  welcome: "Hello! How can I help you?",
  trigger: "Chat with us",
  notice: "About this chat",
  disclosure: "You are chatting with an AI assistant.",
  privacy: "Privacy",
  leadTitle: "Your contact details",
  leadChoose: "Choose…",
  leadSubmit: "Submit",
  leadSkip: "Not now",
  leadThanks: "Thank you. We have your details.",
  leadRequired: "Please fill in this field.",
  leadAgree: "Please agree to continue.",
  leadBad: "Please check this entry.",
  leadFailed: "Your details were not sent. Please try again.",
};

export type Texts = Record<keyof typeof english, string>;

/** Languages that are written from right to left. */
const RIGHT_TO_LEFT = new Set(["ar", "fa", "he", "ur"]);

export interface Language {
  code: string;
  direction: "ltr" | "rtl";
  texts: Texts;
}

/** Replaces placeholders by values. */
export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (mark, name: string) => String(values[name] ?? mark));
}

/** Returns the texts of a configuration in the visitor's language. Default texts of a new agent equal the English
 * ones here and are translated; custom texts are not. */
export function translateDefaults(settings: Settings, { texts }: Language): Settings {
  const own = (text: string, name: keyof Texts) => (text === english[name] ? texts[name] : text);
  return {
    ...settings,
    welcomeMessage: own(settings.welcomeMessage, "welcome"),
    placeholderText: own(settings.placeholderText, "placeholder"),
    triggerText: own(settings.triggerText, "trigger"),
    offlineMessage: own(settings.offlineMessage, "away"),
  };
}

/** Returns the first of the preferred languages that is available. */
export async function chooseLanguage(
  wishes: readonly string[],
  load: () => Promise<typeof import("./languages.ts")>,
): Promise<Language> {
  const codes = wishes.map((wish) => wish.toLowerCase().split(/[-_]/)[0] ?? "").filter(Boolean);
  const language = (code: string, texts: Texts): Language => {
    return { code, texts, direction: RIGHT_TO_LEFT.has(code) ? "rtl" : "ltr" };
  };
  if (codes[0] && codes[0] !== "en") {
    try {
      const spoken = (await load()).languages(Object.keys(english) as (keyof Texts)[]);
      for (const code of codes) {
        if (code === "en") break;
        const texts = spoken[code];
        if (texts) return language(code, texts);
      }
    } catch {
      // Falls back to English.
    }
  }
  return language("en", english);
}
