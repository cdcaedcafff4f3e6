// Types of the admin API by the names of the dashboard. `admin-api.ts` is generated: `npm run types`.
import type { components } from './admin-api';

type Schemas = components['schemas'];

export type Status = Schemas['ActivationStatus'];
export type Role = Schemas['UserRole'];
export type Scope = Schemas['KeyScope'];
export type Routing = Schemas['RoutingStrategy'];

export interface Page<T> {
  items: T[];
  total: number;
  hasMore: boolean;
}

export interface CursorPage<T> {
  items: T[];
  nextCursor: string | null;
}

export type Session = Schemas['SessionView'];

export type Theme = Schemas['Theme'];
export type Features = Schemas['Features'];
export type WidgetSettings = Schemas['WidgetSettings'];
export type Product = Schemas['Product'];
export type ProductFeed = Schemas['ProductFeed'];

export interface LeadField {
  /** Key of the value in a lead. */
  name: string;
  label: string;
  type: 'name' | 'email' | 'phone' | 'company' | 'select' | 'text';
  required: boolean;
  options?: string[];
}

export interface LeadForm {
  title: string;
  text: string;
  consent: { text: string; link?: string | null };
  fields: LeadField[];
  trigger: 'before-first-message' | 'after-replies' | 'tool';
  afterReplies?: number | null;
}

/** Lead as stored with its conversation. */
export interface CapturedLead {
  values: Record<string, unknown>;
  /** Statement that the visitor agreed to. */
  consent: string;
  capturedAt: string;
}

export interface Disclosure {
  enabled: boolean;
  text: string;
  privacyLink: string | null;
}

/** Fields set by the service; only responses about one resource have `version`. */
export type Identity = Schemas['ResourceIdentity'];

export type Agent = Omit<Schemas['AgentView'], 'leadForm' | 'disclosure'> & {
    leadForm?: LeadForm | null;
    disclosure?: Disclosure;
  };
export type Team = Schemas['TeamView'];
/** Agents and teams in lists, without their long texts. */
export type AgentItem = Schemas['AgentItem'];
export type TeamItem = Schemas['TeamItem'];
export type Provider = Schemas['ProviderView'];
export type ProviderTestReport = Schemas['ProviderTestReport'];
export type ApiKey = Schemas['KeyView'];
/** API key in the response that creates it. */
export type NewKey = Schemas['NewKeyView'];

/** Editable fields, all of which the service returns. */
export type AgentFields = Omit<Agent, keyof Identity>;
export type TeamFields = Omit<Team, keyof Identity>;
export type ProviderFields = Omit<Provider, keyof Identity | 'hasApiKey'>;
export type KeyFields = Pick<ApiKey, 'name' | 'scopes' | 'expiresAt' | 'limits'>;

export type UiSpec = {
  type: string;
  data: Product[];
};

/** Message of a conversation; only replies have the fields of `ReplyFactsView`. */
export type Message = Omit<Schemas['Page_MessageView']['items'][number], keyof Schemas['ReplyFactsView'] | 'role'> &
  Partial<Omit<Schemas['ReplyFactsView'], 'uiSpec'>> &
  {
    role: 'user' | 'assistant';
    uiSpec?: UiSpec | null;
  };

export type ConversationSummary = Schemas['ConversationView'];
export type ListedConversation = Schemas['ListedConversationView'];
export type Conversation = ConversationSummary & { messages: Message[] };

/** Receipt of an erasure; it has only digests of the visitor. */
export type Erasure = Schemas['ErasureView'];

export type User = Schemas['UserView'];
export type Actor = Schemas['AuditActor'];
export type FieldChange = Schemas['FieldChange'];
export type AuditEntry = Schemas['AuditEntryView'];
