// Parses the token response defensively: a missing field or one of another type gets its
// default, so that an older or newer service does not break the page.

export interface Theme {
  primaryColor: string;
  backgroundColor: string;
  textColor: string;
  borderRadius: string;
  fontFamily: string;
  chatHeaderColor: string;
  userMessageColor: string;
  botMessageColor: string;
  inputBackgroundColor: string;
  sendButtonColor: string;
}

export interface Settings {
  name: string;
  description: string;
  welcomeMessage: string;
  placeholderText: string;
  position: string;
  size: string;
  showAvatar: boolean;
  showTimestamp: boolean;
  enableMarkdown: boolean;
  enableEmailCapture: boolean;
  enableRating: boolean;
  showPoweredBy: boolean;
  maxMessageLength: number;
  rateLimitPerMinute: number;
  autoOpen: boolean;
  autoOpenDelay: number;
  triggerText: string;
  offlineMessage: string;
  /** Visitors are told that they talk to a machine. */
  disclosure: boolean;
  /** Replaces the words of the widget. */
  disclosureText: string;
  privacyLink: string;
  /** Lead form as sent by the service. */
  leadForm: unknown;
  /** Limits of files as sent by the service; null if visitors cannot send any. */
  files: unknown;
  /** The agent is active. */
  active: boolean;
  theme: Theme;
}

type Fields = Record<string, unknown>;

const THEME: Theme = {
  primaryColor: "#2563eb",
  backgroundColor: "#ffffff",
  textColor: "#111827",
  borderRadius: "12px",
  fontFamily: "system-ui, sans-serif",
  chatHeaderColor: "#2563eb",
  userMessageColor: "#2563eb",
  botMessageColor: "#f3f4f6",
  inputBackgroundColor: "#ffffff",
  sendButtonColor: "#2563eb",
};

export const DEFAULTS: Settings = {
  name: "",
  description: "",
  welcomeMessage: "",
  placeholderText: "",
  position: "bottom-right",
  size: "medium",
  showAvatar: true,
  showTimestamp: false,
  enableMarkdown: true,
  enableEmailCapture: false,
  enableRating: false,
  showPoweredBy: false,
  maxMessageLength: 4000,
  rateLimitPerMinute: 30,
  autoOpen: false,
  autoOpenDelay: 0,
  triggerText: "",
  offlineMessage: "",
  disclosure: true,
  disclosureText: "",
  privacyLink: "",
  leadForm: null,
  files: null,
  active: true,
  theme: THEME,
};

/** Returns the settings of a token response. */
export function readSettings(answer: Fields): Settings {
  const offline = fields(answer.offline);
  const configuration = fields(answer.configuration);
  const { disclosure, text: disclosureText, privacyLink } = fields(answer.notice);
  const notice = { disclosure, disclosureText, privacyLink };
  const named = { ...DEFAULTS, ...matchingFields(DEFAULTS, { ...fields(configuration.widget), ...configuration, ...offline, ...notice }) };
  return {
    ...named,
    position: /^(bottom|top)-(right|left)$/.test(named.position) ? named.position : DEFAULTS.position,
    size: /^(small|medium|large)$/.test(named.size) ? named.size : DEFAULTS.size,
    active: answer.offline === undefined,
    theme: { ...THEME, ...matchingFields(THEME, { ...fields(configuration.theme), ...fields(answer.theme) }) },
  };
}

export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns the fields of `values` that `model` has with the same type. */
function matchingFields<T extends object>(model: T, values: Fields): Partial<T> {
  const fitting = Object.entries(model).filter(([name, usual]) => typeof values[name] === typeof usual && name !== "theme");
  return Object.fromEntries(fitting.map(([name]) => [name, values[name]])) as Partial<T>;
}
