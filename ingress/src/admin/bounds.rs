//! Bounds of the texts, lists and numbers of the admin API. The schemas of the types repeat them as
//! literals, and a test compares both.

/// Length of a slug, in bytes.
pub(super) const SLUG_BYTES_MAX: usize = 63;
/// Length of a name, in characters.
pub(super) const NAME_CHARS_MAX: usize = 200;
/// Length of a description, in characters.
pub(super) const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// Length of an agent's instructions, in characters.
pub(super) const INSTRUCTIONS_CHARS_MAX: usize = 200_000;
/// Length of a model's name, in characters.
pub(super) const MODEL_CHARS_MAX: usize = 200;
/// Length of a text that visitors read, in characters.
pub(super) const VISITOR_TEXT_CHARS_MAX: usize = 2_000;
/// Length of the label of a button or field, in characters.
pub(super) const LABEL_CHARS_MAX: usize = 200;
/// Length of a member's specialization, in characters.
pub(super) const SPECIALIZATION_CHARS_MAX: usize = 1_000;
/// Length of the notice that visitors talk to a machine, in characters.
pub(super) const DISCLOSURE_CHARS_MAX: usize = 500;
/// Length of an address, in bytes, which are characters in valid ones.
pub(super) const LINK_BYTES_MAX: usize = 2_048;
/// Length of a provider's key, in characters; tokens of clouds are long.
pub(super) const PROVIDER_KEY_CHARS_MAX: usize = 8_192;
/// Length of an earlier message of a playground run, in characters.
pub(super) const EARLIER_MESSAGE_CHARS_MAX: usize = 262_144;

/// Highest sampling temperature.
pub(super) const TEMPERATURE_MAX: f32 = 2.0;
/// Longest reply, in tokens.
pub(super) const OUTPUT_TOKENS_MAX: u32 = 1_000_000;
/// Longest message of a visitor, in characters.
pub(super) const MESSAGE_LENGTH_MAX: u32 = 1_000_000;
/// Highest rate limit, in requests per minute.
pub(super) const REQUESTS_PER_MINUTE_MAX: u32 = 1_000_000;
/// Longest delay before the widget opens by itself, in milliseconds.
pub(super) const AUTO_OPEN_DELAY_MS_MAX: u32 = 600_000;
/// Longest interval between two fetches of a feed: a week, in minutes.
pub(super) const FEED_MINUTES_MAX: u32 = 7 * 24 * 60;

/// Entries of `allowedDomains`.
pub(super) const ALLOWED_DOMAINS_MAX: usize = 100;
/// Members of a team.
pub(super) const MEMBERS_MAX: usize = 100;
/// Scopes of a key.
pub(super) const SCOPES_MAX: usize = 3;
/// Products that are part of an agent's configuration.
pub(super) const PRODUCTS_MAX: usize = 1_000;
/// Length of a product's title, in characters.
pub(super) const PRODUCT_TITLE_CHARS_MAX: usize = 500;
/// Length of a product's price, in characters.
pub(super) const PRODUCT_PRICE_CHARS_MAX: usize = 60;

/// Organizations of a document.
pub(super) const ORGANIZATIONS_MAX: usize = 1_000;
/// Providers of an organization in a document.
pub(super) const PROVIDERS_MAX: usize = 100;
/// Agents of an organization in a document.
pub(super) const AGENTS_MAX: usize = 1_000;
/// Teams of an organization in a document.
pub(super) const TEAMS_MAX: usize = 200;
/// Keys of an organization in a document.
pub(super) const KEYS_MAX: usize = 1_000;

#[cfg(test)]
mod tests;
