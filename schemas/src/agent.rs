//! An agent and its public faces (specification: Agent, Theme, Widget settings).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    ids::{AgentId, OrgId, ProviderId},
    price,
};

/// An agent as it is configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Identifier, derived from the slug.
    pub id: AgentId,
    /// Owner.
    pub org_id: OrgId,
    /// Name in documents and commands.
    pub slug: String,
    /// Display name.
    pub name: String,
    /// The endpoint that answers; the installation's default when absent.
    pub provider: Option<ProviderId>,
    /// The endpoint that answers when the first one cannot, before the first token.
    pub fallback_provider: Option<ProviderId>,
    /// Everything that needs no resolving.
    #[serde(flatten)]
    pub settings: AgentSettings,
}

/// The settings of an agent that mean the same in a document, in the store and in a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSettings {
    /// What the agent is for, in public words.
    pub description: String,
    /// The system prompt; never public.
    pub instructions: String,
    /// Model; the provider's when absent.
    pub model: Option<String>,
    /// Sampling temperature; the provider's when absent.
    pub temperature: Option<f32>,
    /// Longest reply, in tokens.
    pub max_output_tokens: u32,
    /// Whether it answers.
    pub status: ActivationStatus,
    /// Whether the public API reaches it.
    pub public: bool,
    /// Origins that may use the widget; empty means any.
    pub allowed_domains: Vec<String>,
    /// Initial greeting.
    pub welcome_message: String,
    /// Placeholder of the input.
    pub placeholder_text: String,
    /// Colours and shapes.
    pub theme: WidgetTheme,
    /// Flags.
    pub features: AgentFeatures,
    /// Limits told to clients and enforced.
    pub limits: AgentLimits,
    /// The widget's own settings.
    pub widget: WidgetSettings,
    /// The product catalogue.
    pub ecommerce: EcommerceSettings,
    /// What a client's disconnect does to the running reply.
    pub on_disconnect: OnDisconnect,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            description: String::new(),
            instructions: "You are a helpful assistant.".into(),
            model: None,
            temperature: None,
            max_output_tokens: 1024,
            status: ActivationStatus::Active,
            public: true,
            allowed_domains: Vec::new(),
            welcome_message: "Hello! How can I help you?".into(),
            placeholder_text: "Type your message…".into(),
            theme: WidgetTheme::default(),
            features: AgentFeatures::default(),
            limits: AgentLimits::default(),
            widget: WidgetSettings::default(),
            ecommerce: EcommerceSettings::default(),
            on_disconnect: OnDisconnect::Continue,
        }
    }
}

/// State of an agent or a team; only `active` is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActivationStatus {
    /// Not ready yet.
    Draft,
    /// Answers.
    Active,
    /// Switched off.
    Inactive,
}

/// Colours and shapes, as CSS values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = Theme)]
pub struct WidgetTheme {
    /// Primary brand colour.
    pub primary_color: String,
    /// Chat background.
    pub background_color: String,
    /// Default text colour.
    pub text_color: String,
    /// Border radius of elements.
    pub border_radius: String,
    /// Font family.
    pub font_family: String,
    /// Header background.
    pub chat_header_color: String,
    /// Bubble of the visitor.
    pub user_message_color: String,
    /// Bubble of the agent.
    pub bot_message_color: String,
    /// Background of the input.
    pub input_background_color: String,
    /// Send button.
    pub send_button_color: String,
}

impl Default for WidgetTheme {
    fn default() -> Self {
        Self {
            primary_color: "#2563eb".into(),
            background_color: "#ffffff".into(),
            text_color: "#111827".into(),
            border_radius: "12px".into(),
            font_family: "system-ui, sans-serif".into(),
            chat_header_color: "#2563eb".into(),
            user_message_color: "#2563eb".into(),
            bot_message_color: "#f3f4f6".into(),
            input_background_color: "#ffffff".into(),
            send_button_color: "#2563eb".into(),
        }
    }
}

/// Flags of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = Features)]
pub struct AgentFeatures {
    /// Replies are markdown.
    pub enable_markdown: bool,
    /// Kept for clients; there is no upload endpoint yet.
    pub enable_file_upload: bool,
    /// Ask for an e-mail address.
    pub enable_email_capture: bool,
    /// Let visitors rate.
    pub enable_rating: bool,
    /// Collect leads.
    pub enable_lead_capture: bool,
}

impl Default for AgentFeatures {
    fn default() -> Self {
        Self {
            enable_markdown: true,
            enable_file_upload: false,
            enable_email_capture: false,
            enable_rating: true,
            enable_lead_capture: false,
        }
    }
}

/// Limits of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentLimits {
    /// Longest message, in Unicode scalar values.
    pub max_message_length: u32,
    /// Messages a visitor may send in any rolling minute.
    pub rate_limit_per_minute: u32,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            max_message_length: 4000,
            rate_limit_per_minute: 30,
        }
    }
}

/// Widget settings that no other part of the agent holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WidgetSettings {
    /// Corner of the page.
    pub position: WidgetPosition,
    /// Size of the window.
    pub size: WidgetSize,
    /// Show the agent's avatar in messages.
    pub show_avatar: bool,
    /// Show timestamps on messages.
    pub show_timestamp: bool,
    /// Show the attribution.
    pub show_powered_by: bool,
    /// Open by itself.
    pub auto_open: bool,
    /// Milliseconds before it opens by itself.
    pub auto_open_delay: u32,
    /// Text on the trigger button.
    pub trigger_text: String,
    /// Shown when the agent is away.
    pub offline_message: String,
}

impl Default for WidgetSettings {
    fn default() -> Self {
        Self {
            position: WidgetPosition::BottomRight,
            size: WidgetSize::Medium,
            show_avatar: true,
            show_timestamp: false,
            show_powered_by: true,
            auto_open: false,
            auto_open_delay: 3000,
            trigger_text: "Chat with us".into(),
            offline_message: "We are away at the moment. Please try again later.".into(),
        }
    }
}

/// Corner of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WidgetPosition {
    /// Bottom right.
    BottomRight,
    /// Bottom left.
    BottomLeft,
    /// Top right.
    TopRight,
    /// Top left.
    TopLeft,
}

/// Size of the widget's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WidgetSize {
    /// Small.
    Small,
    /// Medium.
    Medium,
    /// Large.
    Large,
}

/// The products that an agent may show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EcommerceSettings {
    /// Whether the agent has its product tools.
    pub enabled: bool,
    /// Products that the document itself names.
    pub products: Vec<Product>,
    /// Where further products are fetched from, again and again.
    pub feed: Option<ProductFeed>,
}

/// A file of products on the web.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProductFeed {
    /// Its address.
    pub url: String,
    /// Pause between two fetches.
    #[serde(default = "default_every_minutes")]
    pub every_minutes: u32,
    /// How it is written.
    #[serde(default)]
    pub format: FeedFormat,
}

const fn default_every_minutes() -> u32 {
    60
}

/// How a file of products is written.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FeedFormat {
    /// Its first character tells: JSON begins with a bracket.
    #[default]
    Auto,
    /// A head of names and a row for each product, between commas, semicolons, tabs or bars.
    Csv,
    /// An array of objects, an object with such an array, or an object a line.
    Json,
}

/// A product (specification: Rich UI).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    /// Name.
    pub title: String,
    /// Price as shown; a number is taken as its text.
    #[serde(default, deserialize_with = "price::text_or_number")]
    pub price: String,
    /// URL of a picture.
    #[serde(default)]
    pub image: String,
    /// URL of the product's page.
    #[serde(default)]
    pub url: String,
}

/// What a client's disconnect does to the running reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDisconnect {
    /// The reply is finished and stored.
    Continue,
    /// The model call stops within a second; what was shown is stored as cancelled.
    Cancel,
}
