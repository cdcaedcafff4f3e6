//! Agents, their widget settings and their product catalogs (specification: Agent, Theme, Widget
//! settings).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    file::FileSettings,
    ids::{AgentId, OrgId, ProviderId},
    lead::LeadForm,
    price,
    text_schemas::AllowedDomain,
};

/// Number of allowed domains in the summary of an agent.
pub const SUMMARY_DOMAINS_MAX: usize = 3;

/// A configured agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Identifier, derived from the slug.
    pub id: AgentId,
    /// Organization that owns the agent.
    pub org_id: OrgId,
    /// Name of the agent in documents and commands.
    pub slug: String,
    /// Display name shown in the widget and the dashboard.
    pub name: String,
    /// Model provider; the default provider of the installation if absent.
    pub provider: Option<ProviderId>,
    /// Fallback provider, used when the first one fails before the first token.
    pub fallback_provider: Option<ProviderId>,
    /// Settings that contain no references.
    #[serde(flatten)]
    pub settings: AgentSettings,
}

/// The settings of an agent that are the same in a document, in the store and in a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSettings {
    /// Public description of the agent's purpose.
    #[schema(max_length = 2_000)]
    pub description: String,
    /// System prompt; never shown to the public.
    #[schema(max_length = 200_000)]
    pub instructions: String,
    /// Model; the default model of the provider if absent.
    #[schema(max_length = 200)]
    pub model: Option<String>,
    /// Sampling temperature; that of the provider if absent.
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f32>,
    /// Thoroughness of the model's thoughts before it answers; that of the provider if absent.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Maximum length of a reply, in tokens.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub max_output_tokens: u32,
    /// Activation status; only an active agent answers.
    pub status: ActivationStatus,
    /// `true` if the public API can reach the agent.
    pub public: bool,
    /// Origins that may use the widget; empty means any.
    #[schema(max_items = 100, value_type = Vec<AllowedDomain>)]
    pub allowed_domains: Vec<String>,
    /// Greeting shown before the first message.
    #[schema(max_length = 2_000)]
    pub welcome_message: String,
    /// Placeholder of the input field.
    #[schema(max_length = 200)]
    pub placeholder_text: String,
    /// Colors and shapes of the widget.
    pub theme: WidgetTheme,
    /// Features that are switched on or off in the widget.
    pub features: AgentFeatures,
    /// Limits of messages, announced to clients and enforced.
    pub limits: AgentLimits,
    /// Settings of the widget.
    pub widget: WidgetSettings,
    /// Product catalog of the agent.
    pub ecommerce: EcommerceSettings,
    /// Treatment of a running reply whose client disconnects.
    pub on_disconnect: OnDisconnect,
    /// Contact data that visitors are asked for, if `features.enableLeadCapture` is on.
    pub lead_form: Option<LeadForm>,
    /// Notices that visitors read before they write.
    pub disclosure: DisclosureSettings,
    /// Files that visitors may send, if `features.enableFileUpload` is on.
    pub files: FileSettings,
}

impl AgentSettings {
    /// Returns the settings without long texts, for lists: what is left out has its default.
    #[must_use]
    pub fn summary(&self) -> Self {
        let domains = self.allowed_domains.iter().take(SUMMARY_DOMAINS_MAX);
        Self {
            description: self.description.clone(),
            model: self.model.clone(),
            temperature: self.temperature,
            reasoning_effort: self.reasoning_effort,
            max_output_tokens: self.max_output_tokens,
            status: self.status,
            public: self.public,
            allowed_domains: domains.cloned().collect(),
            theme: self.theme.clone(),
            features: self.features.clone(),
            limits: self.limits.clone(),
            ecommerce: EcommerceSettings {
                enabled: self.ecommerce.enabled,
                products: Vec::new(),
                feed: self.ecommerce.feed.clone(),
            },
            on_disconnect: self.on_disconnect,
            lead_form: self.lead_form.as_ref().map(LeadForm::summary),
            ..Self::default()
        }
    }

    /// Returns the files that the agent takes; `None` if it takes none.
    #[must_use]
    pub fn accepted_files(&self) -> Option<&FileSettings> {
        Some(&self.files).filter(|_| self.features.enable_file_upload)
    }

    /// Returns the form with which the agent asks for contact data; `None` if it does not ask.
    #[must_use]
    pub fn active_lead_form(&self) -> Option<&LeadForm> {
        self.lead_form
            .as_ref()
            .filter(|_| self.features.enable_lead_capture)
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            description: String::new(),
            instructions: "You are a helpful assistant.".into(),
            model: None,
            temperature: None,
            reasoning_effort: None,
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
            lead_form: None,
            disclosure: DisclosureSettings::default(),
            files: FileSettings::default(),
        }
    }
}

/// The activation state of an agent or a team. Only `active` answers messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActivationStatus {
    /// Not yet released; answers with its offline message.
    Draft,
    /// Answers messages.
    Active,
    /// Switched off; answers with its offline message.
    Inactive,
}

/// Thoroughness of a model's thoughts. Which of them a model knows is its provider's matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// Answers at once.
    None,
    /// Thinks as little as the model can.
    Minimal,
    /// Thinks briefly.
    Low,
    /// Thinks as long as most questions need.
    Medium,
    /// Thinks longer.
    High,
    /// Thinks longer still.
    Xhigh,
    /// Thinks as long as the model can.
    Max,
}

impl ReasoningEffort {
    /// Returns the name in the protocol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// Colors and shapes of the widget, as CSS values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = Theme)]
pub struct WidgetTheme {
    /// Primary color of the brand.
    #[schema(max_length = 80)]
    pub primary_color: String,
    /// Background color of the chat.
    #[schema(max_length = 80)]
    pub background_color: String,
    /// Default color of text.
    #[schema(max_length = 80)]
    pub text_color: String,
    /// Border radius of the widget's elements.
    #[schema(max_length = 20)]
    pub border_radius: String,
    /// CSS font family of the widget.
    #[schema(max_length = 200)]
    pub font_family: String,
    /// Background color of the header.
    #[schema(max_length = 80)]
    pub chat_header_color: String,
    /// Color of a visitor's messages.
    #[schema(max_length = 80)]
    pub user_message_color: String,
    /// Color of an agent's messages.
    #[schema(max_length = 80)]
    pub bot_message_color: String,
    /// Background color of the input field.
    #[schema(max_length = 80)]
    pub input_background_color: String,
    /// Color of the send button.
    #[schema(max_length = 80)]
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

/// Features of the widget that are switched on or off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(as = Features)]
pub struct AgentFeatures {
    /// Renders replies as markdown.
    pub enable_markdown: bool,
    /// Lets visitors send files with their messages, as `files` allows.
    pub enable_file_upload: bool,
    /// Shows a form for an e-mail address; visitors can chat without it.
    pub enable_email_capture: bool,
    /// Lets visitors rate a conversation.
    pub enable_rating: bool,
    /// Asks visitors for contact data with `leadForm`.
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

/// The notices that visitors read before they write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DisclosureSettings {
    /// Tells visitors that they talk to a machine, as the law requires in the EU (Regulation
    /// 2024/1689, Article 50).
    pub enabled: bool,
    /// Words of that notice; empty for those of the widget in the visitor's language.
    #[schema(max_length = 500)]
    pub text: String,
    /// Address of the privacy notice.
    #[schema(max_length = 2048)]
    pub privacy_link: Option<String>,
}

impl Default for DisclosureSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            text: String::new(),
            privacy_link: None,
        }
    }
}

/// Limits of an agent's messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentLimits {
    /// Maximum length of a message, in Unicode scalar values.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub max_message_length: u32,
    /// Messages that a visitor may send in any rolling minute.
    #[schema(minimum = 1, maximum = 1_000_000)]
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

/// Settings of the widget's window and button.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WidgetSettings {
    /// Corner of the page in which the widget is placed.
    pub position: WidgetPosition,
    /// Size of the chat window.
    pub size: WidgetSize,
    /// Shows the agent's avatar beside its messages.
    pub show_avatar: bool,
    /// Shows the time of each message.
    pub show_timestamp: bool,
    /// Shows the attribution below the chat.
    pub show_powered_by: bool,
    /// Opens the widget without a click.
    pub auto_open: bool,
    /// Delay before the widget opens by itself, in milliseconds.
    #[schema(maximum = 600_000)]
    pub auto_open_delay: u32,
    /// Text of the button that opens the widget.
    #[schema(max_length = 200)]
    pub trigger_text: String,
    /// Text shown while the agent is not active.
    #[schema(max_length = 2_000)]
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

/// The corner of the page in which the widget is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WidgetPosition {
    /// Bottom right corner of the page.
    BottomRight,
    /// Bottom left corner of the page.
    BottomLeft,
    /// Top right corner of the page.
    TopRight,
    /// Top left corner of the page.
    TopLeft,
}

/// The size of the chat window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WidgetSize {
    /// Small chat window.
    Small,
    /// Medium-sized chat window.
    Medium,
    /// Large chat window.
    Large,
}

/// The product catalog of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EcommerceSettings {
    /// `true` if the agent has the product tools.
    pub enabled: bool,
    /// Products that are part of the configuration.
    #[schema(max_items = 1_000)]
    pub products: Vec<Product>,
    /// Feed from which more products are fetched at regular intervals.
    pub feed: Option<ProductFeed>,
}

/// A product feed, a file on a web server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProductFeed {
    /// URL of the feed.
    #[schema(max_length = 2_048)]
    pub url: String,
    /// Interval between two fetches, in minutes.
    #[serde(default = "default_every_minutes")]
    #[schema(minimum = 1, maximum = 10_080)]
    pub every_minutes: u32,
    /// File format of the feed.
    #[serde(default)]
    pub format: FeedFormat,
}

const fn default_every_minutes() -> u32 {
    60
}

/// The file format of a product feed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FeedFormat {
    /// Detects the format: a JSON file starts with a bracket.
    #[default]
    Auto,
    /// A header line and a line for each product, separated by commas, semicolons, tabs or bars.
    Csv,
    /// An array of objects, an object with such an array, or one object per line.
    Json,
}

/// A product as the widget shows it (specification: Rich UI).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    /// Name of the product.
    #[schema(max_length = 500)]
    pub title: String,
    /// Displayed price; a number is converted to text.
    #[serde(default, deserialize_with = "price::text_or_number")]
    #[schema(max_length = 60)]
    pub price: String,
    /// URL of the product's picture.
    #[serde(default)]
    #[schema(max_length = 2_048)]
    pub image: String,
    /// URL of the product's page.
    #[serde(default)]
    #[schema(max_length = 2_048)]
    pub url: String,
}

/// The treatment of a running reply whose client disconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnDisconnect {
    /// The reply is generated to its end and stored.
    Continue,
    /// The model call stops within a second. The text shown so far is stored as canceled.
    Cancel,
}
