//! Validation of the values of an admin request, before anything is written.

use std::collections::HashSet;

use switchboard_schemas::{
    agent::{AgentSettings, DisclosureSettings, ProductFeed},
    file::{FILE_BYTES_MAX, FileSettings},
    lead::LeadForm,
};

use super::{errors::ValidationError, themes};
use crate::http::origin::OriginPattern;

/// The largest number of members of a team.
pub(super) const MEMBERS_MAX: usize = 100;
const SLUG_BYTES_MAX: usize = 63;
const NAME_CHARS_MAX: usize = 200;
const PRODUCTS_MAX: usize = 1000;
const FEED_URL_BYTES_MAX: usize = 2048;
const LINK_BYTES_MAX: usize = 2048;
const DISCLOSURE_CHARS_MAX: usize = 500;
const FEED_MINUTES_MAX: u32 = 7 * 24 * 60;
const ALLOWED_DOMAINS_MAX: usize = 100;
const TEMPERATURE_MAX: f32 = 2.0;
/// The rule for addresses that [`is_web_address`] checks.
pub(super) const WEB_ADDRESS_RULE: &str = "must be an http or https address";

pub(super) fn check_settings(settings: &AgentSettings) -> Result<(), ValidationError> {
    let limits = &settings.limits;
    check_at_least_one(settings.max_output_tokens, "maxOutputTokens")?;
    check_at_least_one(limits.max_message_length, "limits.maxMessageLength")?;
    check_at_least_one(limits.rate_limit_per_minute, "limits.rateLimitPerMinute")?;
    let in_range = |temperature| (0.0..=TEMPERATURE_MAX).contains(&temperature);
    if !settings.temperature.is_none_or(in_range) {
        return Err(ValidationError::new("temperature", "must be from 0 to 2"));
    }
    themes::check_theme(&settings.theme).map_err(|error| error.below("theme"))?;
    let domains = &settings.allowed_domains;
    check_at_most(domains.len(), ALLOWED_DOMAINS_MAX, "allowedDomains")?;
    for (index, entry) in domains.iter().enumerate() {
        if let Err(error) = entry.parse::<OriginPattern>() {
            let path = format!("allowedDomains[{index}]");
            return Err(ValidationError::new(path, error.to_string()));
        }
    }
    check_products(settings).map_err(|error| error.below("ecommerce.products"))?;
    if let Some(form) = &settings.lead_form {
        check_lead_form(form).map_err(|error| error.below("leadForm"))?;
    }
    check_disclosure(&settings.disclosure).map_err(|error| error.below("disclosure"))?;
    check_files(&settings.files).map_err(|error| error.below("files"))?;
    settings.ecommerce.feed.as_ref().map_or(Ok(()), |feed| {
        check_feed(feed).map_err(|error| error.below("ecommerce.feed"))
    })
}

fn check_lead_form(form: &LeadForm) -> Result<(), ValidationError> {
    form.check()
        .map_err(|error| ValidationError::new(error.path, error.reason))?;
    check_link(form.consent.link.as_deref(), "consent.link")
}

fn check_disclosure(disclosure: &DisclosureSettings) -> Result<(), ValidationError> {
    if disclosure.text.chars().count() > DISCLOSURE_CHARS_MAX {
        let reason = format!("must have at most {DISCLOSURE_CHARS_MAX} characters");
        return Err(ValidationError::new("text", reason));
    }
    let text = &disclosure.text;
    if !text.is_empty() && !text.chars().any(char::is_alphanumeric) {
        // Only `enabled` switches the notice off.
        return Err(ValidationError::new("text", "must have words, or be empty"));
    }
    check_link(disclosure.privacy_link.as_deref(), "privacyLink")
}

fn check_files(files: &FileSettings) -> Result<(), ValidationError> {
    if !(1..=FILE_BYTES_MAX).contains(&files.max_bytes) {
        let reason = format!("must be from 1 to {FILE_BYTES_MAX}");
        return Err(ValidationError::new("maxBytes", reason));
    }
    if files.types.is_empty() {
        let reason = "must have at least one type; enableFileUpload switches uploads off";
        return Err(ValidationError::new("types", reason));
    }
    let mut seen = HashSet::new();
    match files.types.iter().position(|kind| !seen.insert(kind)) {
        Some(index) => Err(ValidationError::new(
            format!("types[{index}]"),
            "is repeated",
        )),
        None => Ok(()),
    }
}

/// Checks the address of a page that visitors are sent to.
fn check_link(link: Option<&str>, path: &str) -> Result<(), ValidationError> {
    let Some(link) = link else { return Ok(()) };
    if !is_web_address(link) {
        return Err(ValidationError::new(path, WEB_ADDRESS_RULE));
    }
    if has_credentials(link) {
        return Err(ValidationError::new(
            path,
            "must not contain a user or a password",
        ));
    }
    if link.len() > LINK_BYTES_MAX {
        let reason = format!("must have at most {LINK_BYTES_MAX} bytes");
        return Err(ValidationError::new(path, reason));
    }
    Ok(())
}

/// Checks only the form of the URL, because a worker checks its network address with each fetch.
fn check_feed(feed: &ProductFeed) -> Result<(), ValidationError> {
    if !is_web_address(&feed.url) {
        return Err(ValidationError::new("url", WEB_ADDRESS_RULE));
    }
    if feed.url.len() > FEED_URL_BYTES_MAX {
        let reason = format!("must have at most {FEED_URL_BYTES_MAX} bytes");
        return Err(ValidationError::new("url", reason));
    }
    if has_credentials(&feed.url) {
        let reason = "must not contain a user or a password, because responses show it";
        return Err(ValidationError::new("url", reason));
    }
    if !(1..=FEED_MINUTES_MAX).contains(&feed.every_minutes) {
        let reason = "must be from 1 to 10080, a week";
        return Err(ValidationError::new("everyMinutes", reason));
    }
    Ok(())
}

fn check_products(settings: &AgentSettings) -> Result<(), ValidationError> {
    let products = &settings.ecommerce.products;
    check_at_most(products.len(), PRODUCTS_MAX, "")?;
    for (index, product) in products.iter().enumerate() {
        if product.title.trim().is_empty() {
            let path = format!("[{index}].title");
            return Err(ValidationError::new(path, "must not be blank"));
        }
        // Other schemes, for instance `javascript:`, could run code in the visitor's page.
        for (field, address) in [("image", &product.image), ("url", &product.url)] {
            if !address.is_empty() && !is_web_address(address) {
                let path = format!("[{index}].{field}");
                return Err(ValidationError::new(path, WEB_ADDRESS_RULE));
            }
        }
    }
    Ok(())
}

/// Checks the field `slug`.
pub(super) fn check_slug(slug: &str) -> Result<(), ValidationError> {
    let is_slug_byte =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=SLUG_BYTES_MAX).contains(&slug.len())
        && slug.bytes().all(is_slug_byte)
        && !slug.starts_with('-')
    {
        return Ok(());
    }
    let reason = "must have 1 to 63 characters of a-z, 0-9 and -, and not begin with -";
    Err(ValidationError::new("slug", reason))
}

/// Checks the field `name`.
pub(super) fn check_name(name: &str) -> Result<(), ValidationError> {
    if !name.trim().is_empty()
        && name.chars().count() <= NAME_CHARS_MAX
        && !name.chars().any(char::is_control)
    {
        return Ok(());
    }
    let reason = "must have 1 to 200 characters and no control characters";
    Err(ValidationError::new("name", reason))
}

/// The reason that refuses the second of two equal names.
pub(super) const OCCURS_TWICE: &str = "occurs twice";

/// Checks that no two items of a list have the same value of `field`.
pub(super) fn check_unique<'a>(
    values: impl Iterator<Item = &'a str>,
    list: &str,
    field: &str,
) -> Result<(), ValidationError> {
    let mut seen = HashSet::new();
    for (index, value) in values.enumerate() {
        if !seen.insert(value) {
            let path = format!("{list}[{index}].{field}");
            return Err(ValidationError::new(path, OCCURS_TWICE));
        }
    }
    Ok(())
}

/// Checks a limit that must not be zero.
pub(super) fn check_at_least_one(value: u32, path: &str) -> Result<(), ValidationError> {
    match value {
        0 => Err(ValidationError::new(path, "must be at least 1")),
        _ => Ok(()),
    }
}

/// Checks the length of a list.
pub(super) fn check_at_most(count: usize, max: usize, path: &str) -> Result<(), ValidationError> {
    if count <= max {
        return Ok(());
    }
    let reason = format!("must have at most {max} entries");
    Err(ValidationError::new(path, reason))
}

/// Returns whether a text is an absolute URL of `http` or `https`.
pub(super) fn is_web_address(text: &str) -> bool {
    let is_web =
        |uri: http::Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    text.parse().is_ok_and(is_web)
}

/// Returns true for a URL with a user or a password.
pub(super) fn has_credentials(url: &str) -> bool {
    let uri = url.parse::<http::Uri>().ok();
    let authority = uri.as_ref().and_then(http::Uri::authority);
    authority.is_some_and(|authority| authority.as_str().contains('@'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::admin::{document::ApplyDocument, errors::ValidateFields};

    fn path_of_error(kind: &str, entry: Value) -> Option<String> {
        let document =
            json!({ "organizations": [{ "slug": "acme", "name": "Acme", kind: [entry] }] });
        ApplyDocument::from_json(document)
            .unwrap()
            .validate()
            .err()
            .map(|error| error.path)
    }

    #[test]
    fn error_names_the_invalid_field() {
        let agent = |field: &str, value: Value| {
            ("agents", json!({ "slug": "a", "name": "A", field: value }))
        };
        let feed = |feed: Value| agent("ecommerce", json!({ "feed": feed }));
        for ((kind, entry), path) in [
            (agent("slug", json!("A b")), "agents[0].slug"),
            (agent("name", json!(" ")), "agents[0].name"),
            (agent("temperature", json!(3)), "agents[0].temperature"),
            (
                agent("maxOutputTokens", json!(0)),
                "agents[0].maxOutputTokens",
            ),
            (
                agent("allowedDomains", json!(["shop.example", "*"])),
                "agents[0].allowedDomains[1]",
            ),
            (
                agent("theme", json!({ "textColor": "red;" })),
                "agents[0].theme.textColor",
            ),
            (
                agent("limits", json!({ "maxMessageLength": 0 })),
                "agents[0].limits.maxMessageLength",
            ),
            (
                agent(
                    "ecommerce",
                    json!({ "products": [{ "title": "x", "url": "javascript:alert(1)" }] }),
                ),
                "agents[0].ecommerce.products[0].url",
            ),
            (
                feed(json!({ "url": "ftp://shop.example/feed" })),
                "agents[0].ecommerce.feed.url",
            ),
            (
                feed(json!({ "url": "https://user:pass@shop.example/feed" })),
                "agents[0].ecommerce.feed.url",
            ),
            (
                feed(json!({ "url": "https://shop.example", "everyMinutes": 0 })),
                "agents[0].ecommerce.feed.everyMinutes",
            ),
            (
                (
                    "providers",
                    json!({ "slug": "p", "baseUrl": "file:///etc" }),
                ),
                "providers[0].baseUrl",
            ),
            (
                (
                    "keys",
                    json!({ "name": "k", "limits": { "chatPerMinute": 0 } }),
                ),
                "keys[0].limits.chatPerMinute",
            ),
            (
                ("teams", json!({ "slug": "", "name": "T" })),
                "teams[0].slug",
            ),
        ] {
            assert_eq!(
                path_of_error(kind, entry),
                Some(format!("organizations[0].{path}"))
            );
        }
    }

    #[test]
    fn invalid_lead_form_and_notice_name_their_field() {
        let form = |name: &str, link: Option<&str>| {
            let consent = json!({ "text": "Yes", "link": link });
            let field = json!({ "name": name, "label": "E-mail", "type": "email" });
            let form = json!({ "consent": consent, "trigger": "tool", "fields": [field] });
            json!({ "slug": "a", "name": "A", "leadForm": form })
        };
        let notice =
            |disclosure: Value| json!({ "slug": "a", "name": "A", "disclosure": disclosure });
        for (agent, path) in [
            (
                form("mail", Some("javascript:alert(1)")),
                "leadForm.consent.link",
            ),
            (form("E mail", None), "leadForm.fields[0].name"),
            (
                notice(json!({ "privacyLink": "/privacy" })),
                "disclosure.privacyLink",
            ),
            (notice(json!({ "text": "\u{200b}" })), "disclosure.text"),
        ] {
            let path = format!("organizations[0].agents[0].{path}");
            assert_eq!(path_of_error("agents", agent), Some(path));
        }
        assert_eq!(path_of_error("agents", form("mail", None)), None);
    }

    #[test]
    fn duplicate_slug_is_rejected() {
        let agent = json!({ "slug": "a", "name": "A" });
        let document = json!({ "organizations": [{ "slug": "acme", "name": "Acme", "agents": [agent, agent] }] });
        let error = ApplyDocument::from_json(document)
            .unwrap()
            .validate()
            .unwrap_err();
        assert_eq!(error.path, "organizations[0].agents[1].slug");
    }
}
