//! What must be true of a document before its first write: nothing of it is written otherwise.

use std::collections::HashSet;

use switchboard_schemas::agent::{AgentSettings, ProductFeed};

use super::{
    document::{Document, Invalid, KeyDocument, OrganizationDocument, ProviderDocument},
    theme,
};
use crate::http::origin::OriginPattern;

const SLUG_BYTES_MAX: usize = 63;
const NAME_CHARS_MAX: usize = 200;
const PRODUCTS_MAX: usize = 1000;
const FEED_URL_BYTES_MAX: usize = 2048;
const FEED_MINUTES_MAX: u32 = 7 * 24 * 60;
const ALLOWED_DOMAINS_MAX: usize = 100;
const MEMBERS_MAX: usize = 100;
const TEMPERATURE_MAX: f32 = 2.0;

/// Checks everything that needs no look into the catalogue.
pub(super) fn check(document: &Document) -> Result<(), Invalid> {
    unique(
        document
            .organizations
            .iter()
            .map(|organization| organization.slug.as_str()),
        "organizations",
        "slug",
    )?;
    for (index, organization) in document.organizations.iter().enumerate() {
        check_organization(organization, &format!("organizations[{index}]"))?;
    }
    Ok(())
}

fn check_organization(organization: &OrganizationDocument, path: &str) -> Result<(), Invalid> {
    check_slug(&organization.slug, path)?;
    check_name(&organization.name, path)?;
    let at = |kind: &str| format!("{path}.{kind}");
    unique(
        organization
            .providers
            .iter()
            .map(|provider| provider.slug.as_str()),
        &at("providers"),
        "slug",
    )?;
    unique(
        organization
            .agents
            .iter()
            .map(|agent| agent.names.slug.as_str()),
        &at("agents"),
        "slug",
    )?;
    unique(
        organization.teams.iter().map(|team| team.slug.as_str()),
        &at("teams"),
        "slug",
    )?;
    unique(
        organization.keys.iter().map(|key| key.name.as_str()),
        &at("keys"),
        "name",
    )?;
    for (index, provider) in organization.providers.iter().enumerate() {
        check_provider(provider, &format!("{path}.providers[{index}]"))?;
    }
    for (index, agent) in organization.agents.iter().enumerate() {
        let path = format!("{path}.agents[{index}]");
        check_slug(&agent.names.slug, &path)?;
        check_name(&agent.names.name, &path)?;
        check_settings(&agent.settings, &path)?;
    }
    for (index, team) in organization.teams.iter().enumerate() {
        let path = format!("{path}.teams[{index}]");
        check_slug(&team.slug, &path)?;
        check_name(&team.name, &path)?;
        at_most(team.members.len(), MEMBERS_MAX, &format!("{path}.members"))?;
        unique(
            team.members.iter().map(|member| member.agent.as_str()),
            &format!("{path}.members"),
            "agent",
        )?;
    }
    organization
        .keys
        .iter()
        .enumerate()
        .try_for_each(|(index, key)| check_key(key, &format!("{path}.keys[{index}]")))
}

fn check_provider(provider: &ProviderDocument, path: &str) -> Result<(), Invalid> {
    check_slug(&provider.slug, path)?;
    if !is_web_address(&provider.base_url) {
        return Err(Invalid::new(
            format!("{path}.baseUrl"),
            "must be an http or https address",
        ));
    }
    if provider.model.trim().is_empty() {
        return Err(Invalid::new(format!("{path}.model"), "must not be blank"));
    }
    Ok(())
}

fn check_key(key: &KeyDocument, path: &str) -> Result<(), Invalid> {
    check_name(&key.name, path)?;
    let limits = key.limits.clone().unwrap_or_default();
    for (name, limit) in [
        ("chatPerMinute", limits.chat_per_minute),
        ("configPerMinute", limits.config_per_minute),
        ("conversationsPerMinute", limits.conversations_per_minute),
    ] {
        at_least_one(limit.unwrap_or(1), &format!("{path}.limits.{name}"))?;
    }
    Ok(())
}

fn check_settings(settings: &AgentSettings, path: &str) -> Result<(), Invalid> {
    at_least_one(
        settings.max_output_tokens,
        &format!("{path}.maxOutputTokens"),
    )?;
    at_least_one(
        settings.limits.max_message_length,
        &format!("{path}.limits.maxMessageLength"),
    )?;
    at_least_one(
        settings.limits.rate_limit_per_minute,
        &format!("{path}.limits.rateLimitPerMinute"),
    )?;
    if settings
        .temperature
        .is_some_and(|temperature| !(0.0..=TEMPERATURE_MAX).contains(&temperature))
    {
        return Err(Invalid::new(
            format!("{path}.temperature"),
            "must be from 0 to 2",
        ));
    }
    if let Some((field, reason)) = theme::mistake(&settings.theme) {
        return Err(Invalid::new(format!("{path}.theme.{field}"), reason));
    }
    at_most(
        settings.allowed_domains.len(),
        ALLOWED_DOMAINS_MAX,
        &format!("{path}.allowedDomains"),
    )?;
    for (index, entry) in settings.allowed_domains.iter().enumerate() {
        let parsed = entry.parse::<OriginPattern>();
        parsed.map_err(|error| {
            Invalid::new(format!("{path}.allowedDomains[{index}]"), error.to_string())
        })?;
    }
    check_products(settings, &format!("{path}.ecommerce.products"))?;
    settings.ecommerce.feed.as_ref().map_or(Ok(()), |feed| {
        check_feed(feed, &format!("{path}.ecommerce.feed"))
    })
}

/// Where it leads is looked at when it is fetched: a name can mean another address by then.
fn check_feed(feed: &ProductFeed, path: &str) -> Result<(), Invalid> {
    if !is_web_address(&feed.url) || feed.url.len() > FEED_URL_BYTES_MAX {
        return Err(Invalid::new(
            format!("{path}.url"),
            "must be an http or https address",
        ));
    }
    let authority = feed
        .url
        .parse::<http::Uri>()
        .ok()
        .and_then(|uri| uri.authority().cloned());
    if authority.is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(Invalid::new(
            format!("{path}.url"),
            "must hold no user and no password: they would be shown",
        ));
    }
    if !(1..=FEED_MINUTES_MAX).contains(&feed.every_minutes) {
        return Err(Invalid::new(
            format!("{path}.everyMinutes"),
            "must be from 1 to 10080, a week",
        ));
    }
    Ok(())
}

fn check_products(settings: &AgentSettings, path: &str) -> Result<(), Invalid> {
    let products = &settings.ecommerce.products;
    at_most(products.len(), PRODUCTS_MAX, path)?;
    for (index, product) in products.iter().enumerate() {
        if product.title.trim().is_empty() {
            return Err(Invalid::new(
                format!("{path}[{index}].title"),
                "must not be blank",
            ));
        }
        // Other schemes, for instance `javascript:`, would run in the visitor's page.
        for (field, address) in [("image", &product.image), ("url", &product.url)] {
            if !address.is_empty() && !is_web_address(address) {
                return Err(Invalid::new(
                    format!("{path}[{index}].{field}"),
                    "must be an http or https address",
                ));
            }
        }
    }
    Ok(())
}

fn check_slug(slug: &str, path: &str) -> Result<(), Invalid> {
    let well_formed = (1..=SLUG_BYTES_MAX).contains(&slug.len())
        && slug
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !slug.starts_with('-');
    let reason = "must have 1 to 63 characters of a-z, 0-9 and -, and not begin with -";
    if well_formed {
        Ok(())
    } else {
        Err(Invalid::new(format!("{path}.slug"), reason))
    }
}

fn check_name(name: &str, path: &str) -> Result<(), Invalid> {
    let well_formed = !name.trim().is_empty()
        && name.chars().count() <= NAME_CHARS_MAX
        && !name.chars().any(char::is_control);
    let reason = "must have 1 to 200 characters and no control characters";
    if well_formed {
        Ok(())
    } else {
        Err(Invalid::new(format!("{path}.name"), reason))
    }
}

fn unique<'a>(
    names: impl Iterator<Item = &'a str>,
    path: &str,
    field: &str,
) -> Result<(), Invalid> {
    let mut seen = HashSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            return Err(Invalid::new(
                format!("{path}[{index}].{field}"),
                "is named twice",
            ));
        }
    }
    Ok(())
}

fn at_least_one(value: u32, path: &str) -> Result<(), Invalid> {
    if value >= 1 {
        Ok(())
    } else {
        Err(Invalid::new(path, "must be at least 1"))
    }
}

fn at_most(count: usize, max: usize, path: &str) -> Result<(), Invalid> {
    if count <= max {
        Ok(())
    } else {
        Err(Invalid::new(
            path,
            format!("must have at most {max} entries"),
        ))
    }
}

fn is_web_address(text: &str) -> bool {
    let address = text.parse::<http::Uri>();
    address
        .is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn mistake(kind: &str, entry: Value) -> Option<String> {
        let document =
            json!({ "organizations": [{ "slug": "acme", "name": "Acme", kind: [entry] }] });
        check(&Document::from_json(document).unwrap())
            .err()
            .map(|invalid| invalid.path)
    }

    #[test]
    fn each_kind_of_mistake_is_found_at_its_place() {
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
                mistake(kind, entry),
                Some(format!("organizations[0].{path}"))
            );
        }
    }

    #[test]
    fn two_things_of_one_name_are_a_mistake() {
        let agent = json!({ "slug": "a", "name": "A" });
        let document = json!({ "organizations": [{ "slug": "acme", "name": "Acme", "agents": [agent, agent] }] });
        let error = check(&Document::from_json(document).unwrap()).unwrap_err();
        assert_eq!(error.path, "organizations[0].agents[1].slug");
    }
}
