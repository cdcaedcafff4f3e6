//! Validation of the values of an admin request, before anything is written.

use std::{collections::HashSet, ops::RangeInclusive};

use switchboard_schemas::{
    agent::{AgentSettings, DisclosureSettings, ProductFeed},
    file::{FILE_BYTES_MAX, FileSettings},
    lead::LeadForm,
};

use super::{
    bounds::{
        ALLOWED_DOMAINS_MAX, AUTO_OPEN_DELAY_MS_MAX, DESCRIPTION_CHARS_MAX, DISCLOSURE_CHARS_MAX,
        FEED_MINUTES_MAX, INSTRUCTIONS_CHARS_MAX, LABEL_CHARS_MAX, LINK_BYTES_MAX,
        MESSAGE_LENGTH_MAX, MODEL_CHARS_MAX, NAME_CHARS_MAX, OUTPUT_TOKENS_MAX,
        PRODUCT_PRICE_CHARS_MAX, PRODUCT_TITLE_CHARS_MAX, PRODUCTS_MAX, REQUESTS_PER_MINUTE_MAX,
        SLUG_BYTES_MAX, TEMPERATURE_MAX, VISITOR_TEXT_CHARS_MAX,
    },
    errors::ValidationError,
    themes,
};
use crate::http::origin::OriginPattern;

/// The rule for addresses that [`is_web_address`] checks.
pub(super) const WEB_ADDRESS_RULE: &str = "must be an http or https address";

pub(super) fn check_settings(settings: &AgentSettings) -> Result<(), ValidationError> {
    check_texts(settings)?;
    check_numbers(settings)?;
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

fn check_texts(settings: &AgentSettings) -> Result<(), ValidationError> {
    let (widget, visitor_text) = (&settings.widget, VISITOR_TEXT_CHARS_MAX);
    for (text, max, path) in [
        (&settings.description, DESCRIPTION_CHARS_MAX, "description"),
        (
            &settings.instructions,
            INSTRUCTIONS_CHARS_MAX,
            "instructions",
        ),
        (&settings.welcome_message, visitor_text, "welcomeMessage"),
        (
            &settings.placeholder_text,
            LABEL_CHARS_MAX,
            "placeholderText",
        ),
        (&widget.trigger_text, LABEL_CHARS_MAX, "widget.triggerText"),
        (
            &widget.offline_message,
            visitor_text,
            "widget.offlineMessage",
        ),
    ] {
        check_chars(text, max, path)?;
    }
    match &settings.model {
        Some(model) => check_model_name("model", model),
        None => Ok(()),
    }
}

fn check_numbers(settings: &AgentSettings) -> Result<(), ValidationError> {
    let (limits, rate) = (&settings.limits, REQUESTS_PER_MINUTE_MAX);
    let tokens = settings.max_output_tokens;
    check_range(tokens, 1..=OUTPUT_TOKENS_MAX, "maxOutputTokens")?;
    let length = limits.max_message_length;
    check_range(length, 1..=MESSAGE_LENGTH_MAX, "limits.maxMessageLength")?;
    let path = "limits.rateLimitPerMinute";
    check_range(limits.rate_limit_per_minute, 1..=rate, path)?;
    let delay = settings.widget.auto_open_delay;
    check_range(delay, 0..=AUTO_OPEN_DELAY_MS_MAX, "widget.autoOpenDelay")?;
    let in_range = |temperature| (0.0..=TEMPERATURE_MAX).contains(&temperature);
    if settings.temperature.is_none_or(in_range) {
        return Ok(());
    }
    Err(ValidationError::new("temperature", "must be from 0 to 2"))
}

fn check_lead_form(form: &LeadForm) -> Result<(), ValidationError> {
    form.check()
        .map_err(|error| ValidationError::new(error.path, error.reason))?;
    check_link(form.consent.link.as_deref(), "consent.link")
}

fn check_disclosure(disclosure: &DisclosureSettings) -> Result<(), ValidationError> {
    check_chars(&disclosure.text, DISCLOSURE_CHARS_MAX, "text")?;
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
    check_chars(link, LINK_BYTES_MAX, path)
}

/// Checks only the form of the URL, because a worker checks its network address with each fetch.
fn check_feed(feed: &ProductFeed) -> Result<(), ValidationError> {
    if !is_web_address(&feed.url) {
        return Err(ValidationError::new("url", WEB_ADDRESS_RULE));
    }
    check_chars(&feed.url, LINK_BYTES_MAX, "url")?;
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
        for (text, max, field) in [
            (&product.title, PRODUCT_TITLE_CHARS_MAX, "title"),
            (&product.price, PRODUCT_PRICE_CHARS_MAX, "price"),
            (&product.image, LINK_BYTES_MAX, "image"),
            (&product.url, LINK_BYTES_MAX, "url"),
        ] {
            check_chars(text, max, field).map_err(|error| error.below(&format!("[{index}]")))?;
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

/// Checks the slug of another resource, before it is looked up.
pub(super) fn check_reference(slug: Option<&str>, path: &str) -> Result<(), ValidationError> {
    check_chars(slug.unwrap_or_default(), SLUG_BYTES_MAX, path)
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

/// Checks the length of a text, in characters as JSON Schema counts them.
pub(super) fn check_chars(text: &str, max: usize, path: &str) -> Result<(), ValidationError> {
    // Most texts have fewer bytes than the bound.
    if text.len() <= max || text.chars().count() <= max {
        return Ok(());
    }
    let reason = format!("must have at most {max} characters");
    Err(ValidationError::new(path, reason))
}

/// Checks a number.
pub(super) fn check_range(
    value: u32,
    range: RangeInclusive<u32>,
    path: &str,
) -> Result<(), ValidationError> {
    if range.contains(&value) {
        return Ok(());
    }
    let reason = format!("must be from {} to {}", range.start(), range.end());
    Err(ValidationError::new(path, reason))
}

/// Checks the name of a model.
pub(super) fn check_model_name(path: &str, name: &str) -> Result<(), ValidationError> {
    check_chars(name, MODEL_CHARS_MAX, path)?;
    let reason = if name.trim().is_empty() {
        "must not be blank"
    } else if name.trim().contains(char::is_control) {
        "must not contain line breaks or other control characters"
    } else {
        return Ok(());
    };
    Err(ValidationError::new(path, reason))
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
    fn value_above_its_bound_names_the_field() {
        let agent = |field: &str, value: Value| {
            ("agents", json!({ "slug": "a", "name": "A", field: value }))
        };
        for ((kind, entry), path) in [
            (agent("model", json!(" ")), "agents[0].model"),
            (
                agent("instructions", json!("x".repeat(200_001))),
                "agents[0].instructions",
            ),
            (
                agent("widget", json!({ "autoOpenDelay": 600_001 })),
                "agents[0].widget.autoOpenDelay",
            ),
            (
                (
                    "keys",
                    json!({ "name": "k", "limits": { "configPerMinute": 4_000_000_000_u32 } }),
                ),
                "keys[0].limits.configPerMinute",
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
