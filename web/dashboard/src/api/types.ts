// Types of the admin API, with its field names.

export type Status = 'draft' | 'active' | 'inactive';
export type Role = 'owner' | 'editor' | 'operator' | 'viewer';
export type Scope = 'chat' | 'config' | 'conversations';
export type Routing = 'intent' | 'round-robin' | 'random';

export interface Page<T> {
  items: T[];
  total: number;
  hasMore: boolean;
}

export interface CursorPage<T> {
  items: T[];
  nextCursor: string | null;
}

export interface Session {
  user: { id: string; email: string; name: string; role: Role; hasPassword?: boolean };
  organization: { id: string; slug: string; name: string };
  rights: string[];
}

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

export interface Features {
  enableMarkdown: boolean;
  enableFileUpload: boolean;
  enableEmailCapture: boolean;
  enableRating: boolean;
  enableLeadCapture: boolean;
}

export interface WidgetSettings {
  position: 'bottom-right' | 'bottom-left' | 'top-right' | 'top-left';
  size: 'small' | 'medium' | 'large';
  showAvatar: boolean;
  showTimestamp: boolean;
  showPoweredBy: boolean;
  autoOpen: boolean;
  autoOpenDelay: number;
  triggerText: string;
  offlineMessage: string;
}

export interface Product {
  title: string;
  price: string;
  image: string;
  url: string;
}

/** Product file on the web that is fetched regularly. */
export interface ProductFeed {
  url: string;
  everyMinutes: number;
  format: 'auto' | 'csv' | 'json';
}

/** Editable fields of an agent. */
export interface AgentFields {
  slug: string;
  name: string;
  description: string;
  instructions: string;
  provider: string | null;
  fallbackProvider: string | null;
  model: string | null;
  temperature: number | null;
  maxOutputTokens: number;
  status: Status;
  public: boolean;
  allowedDomains: string[];
  welcomeMessage: string;
  placeholderText: string;
  theme: Theme;
  features: Features;
  limits: { maxMessageLength: number; rateLimitPerMinute: number };
  widget: WidgetSettings;
  ecommerce: { enabled: boolean; products: Product[]; feed: ProductFeed | null };
  onDisconnect: 'continue' | 'cancel';
}

/** Fields set by the service; only responses about one resource have `version`. */
export interface Kept {
  id: string;
  organizationId: string;
  version?: string;
}

export type Agent = AgentFields & Kept;

export interface TeamFields {
  slug: string;
  name: string;
  description: string;
  routing: Routing;
  defaultAgent: string | null;
  members: { agent: string; specialization: string }[];
  public: boolean;
  status: Status;
}

export type Team = TeamFields & Kept;

export interface ProviderFields {
  slug: string;
  baseUrl: string;
  model: string;
  embeddingModel: string | null;
  continuesPrefix: boolean;
}

export type Provider = ProviderFields & Kept & { hasApiKey: boolean };

export interface KeyFields {
  name: string;
  scopes: Scope[];
  expiresAt: string | null;
  limits: {
    chatPerMinute: number | null;
    configPerMinute: number | null;
    conversationsPerMinute: number | null;
  };
}

export type ApiKey = KeyFields & Kept & { lastFour: string; createdAt: string; lastUsedAt: string | null };
/** API key in the response that creates it. */
export type NewKey = ApiKey & { value: string };

export interface UiSpec {
  type: string;
  data: Product[];
}

export interface Message {
  id: string;
  role: 'user' | 'assistant';
  content: string;
  timestamp: string;
  agentId?: string;
  agentName?: string;
  status?: string;
  finishReason?: string | null;
  usage?: { promptTokens?: number; completionTokens?: number } | null;
  responseTime?: number | null;
  model?: string | null;
  routingReason?: string | null;
  routing?: { stage: string; tookMs: number; scores: { agentId: string; permille: number }[] } | null;
  uiSpec?: UiSpec | null;
  leftOut?: { messages: number; summarized: number } | null;
  summary?: string | null;
  /** Recorded steps of the reply in milliseconds since acceptance. */
  timeline?: { step: string; ms: number }[];
  /** Outcome of a message without a reply. */
  unanswered?: { status: string; failure: string | null; responseTime: number; at: string };
}

export interface ConversationSummary {
  id: string;
  sessionId: string;
  agentId: string | null;
  teamId: string | null;
  messageCount: number;
  activeMessageId: string | null;
  createdAt: string;
  updatedAt: string;
  metadata: Record<string, unknown>;
}

export type Conversation = ConversationSummary & { messages: Message[] };

/** Receipt of an erasure; it has only digests of the visitor. */
export interface Erasure {
  id: string;
  state: 'running' | 'finished';
  visitor: { visitorId: string | null; visitorEmail: string | null };
  by: { type: 'user'; id: string } | { type: 'token' };
  beganAt: string;
  finishedAt: string | null;
  lookedAt: number;
  conversations: number;
  messages: number;
}

export interface User {
  id: string;
  email: string;
  name: string;
  role: Role;
  state: 'invited' | 'active' | 'disabled';
  createdAt: string;
}

export type Actor = { type: 'user'; id: string; email: string } | { type: 'token' } | { type: 'command' };

export interface FieldChange {
  field: string;
  before?: unknown;
  after?: unknown;
}

export interface AuditEntry {
  id: string;
  at: string;
  actor: Actor;
  action: string;
  kind: string;
  subject: string;
  fields: FieldChange[];
  address?: string | null;
  requestId?: string;
}
