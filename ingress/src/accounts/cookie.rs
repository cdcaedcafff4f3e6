//! Session cookies.
//!
//! Over https the name starts with `__Host-`: browsers then accept the cookie only from this host,
//! over https and for all paths, so that no sibling domain can set one. Over http browsers would
//! reject such a cookie, and some reject every `Secure` one, even on localhost. A plain name
//! without `Secure` is used there, so that the product can be tried locally. Installations with an
//! https dashboard accept no plain name.

use cookie::{Cookie, CookieBuilder, SameSite, time::Duration};
use http::{HeaderMap, HeaderValue, Method, Uri, header};
use switchboard_schemas::random_token::RandomToken;

use crate::{
    config::IngressConfig,
    http::{ApiError, ApiResult},
};

const SECURE_NAME: &str = "__Host-switchboard";
const PLAIN_NAME: &str = "switchboard";
const HTTPS: &str = "https://";

/// Returns the session tokens in a request's cookies, at most one per accepted name.
pub(super) fn session_tokens(headers: &HeaderMap, config: &IngressConfig) -> Vec<RandomToken> {
    let names = if is_https_only(config) {
        &[SECURE_NAME][..]
    } else {
        &[SECURE_NAME, PLAIN_NAME]
    };
    let value = |name| find_cookies(headers, &[name]).next()?.parse().ok();
    names.iter().filter_map(|name| value(*name)).collect()
}

/// Returns the values of the cookies with these names.
pub(super) fn find_cookies<'a>(
    headers: &'a HeaderMap,
    names: &[&'a str],
) -> impl Iterator<Item = String> {
    let cookies = parse_cookies(headers).filter(|cookie| names.contains(&cookie.name()));
    cookies.map(|cookie| cookie.value().to_owned())
}

/// Returns true if the request has a session cookie, valid or not.
pub(crate) fn has_session_cookie(headers: &HeaderMap) -> bool {
    parse_cookies(headers).any(|cookie| [SECURE_NAME, PLAIN_NAME].contains(&cookie.name()))
}

/// Returns the header that stores `token` for the maximum lifetime of a session.
pub(super) fn session_cookie(
    token: &RandomToken,
    headers: &HeaderMap,
    config: &IngressConfig,
) -> ApiResult<HeaderValue> {
    let lifetime = Duration::seconds((config.session_lifetime_ms / 1000).cast_signed());
    format_session(token.expose(), lifetime, is_https(headers, config))
}

/// Returns the headers that delete the session cookies.
pub(super) fn expired_cookies(config: &IngressConfig) -> ApiResult<Vec<HeaderValue>> {
    let names = if is_https_only(config) {
        &[true][..]
    } else {
        &[true, false]
    };
    names
        .iter()
        .map(|secure| format_session("", Duration::ZERO, *secure))
        .collect()
}

pub(crate) fn may_change_data(method: &Method) -> bool {
    !matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE
    )
}

fn format_session(value: &str, max_age: Duration, is_secure: bool) -> ApiResult<HeaderValue> {
    let name = if is_secure { SECURE_NAME } else { PLAIN_NAME };
    format_cookie(Cookie::build((name, value)).max_age(max_age), is_secure)
}

/// Returns the header that stores a cookie which no script and no other host reads.
pub(super) fn format_cookie(cookie: CookieBuilder<'_>, is_secure: bool) -> ApiResult<HeaderValue> {
    let cookie = cookie
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(is_secure);
    let mut value =
        HeaderValue::from_str(&cookie.to_string()).map_err(|error| ApiError::internal(&error))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns true if the browser uses https. Browsers send their origin with every changing request,
/// and sign-in is one.
pub(super) fn is_https(headers: &HeaderMap, config: &IngressConfig) -> bool {
    let origin = headers
        .get(header::ORIGIN)
        .and_then(|origin| origin.to_str().ok())
        .unwrap_or_default();
    is_https_only(config) || origin.starts_with(HTTPS)
}

fn is_https_only(config: &IngressConfig) -> bool {
    let url = config.dashboard_url.parse::<Uri>();
    url.is_ok_and(|url| url.scheme_str() == Some("https"))
}

fn parse_cookies(headers: &HeaderMap) -> impl Iterator<Item = Cookie<'_>> {
    let texts = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    texts.flat_map(Cookie::split_parse).filter_map(Result::ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> IngressConfig {
        IngressConfig {
            dashboard_url: url.into(),
            ..IngressConfig::default()
        }
    }

    fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn kept_text(origin: &str, url: &str) -> String {
        let value = session_cookie(
            &RandomToken::generate(),
            &headers(&[(header::ORIGIN, origin)]),
            &config(url),
        )
        .unwrap();
        value.to_str().unwrap().to_owned()
    }

    #[test]
    fn cookie_name_has_the_host_prefix_over_https_only() {
        for (origin, url) in [
            ("https://x.example", "http://localhost:8080"),
            ("http://x", "https://x.example"),
            ("", "https://x.example"),
        ] {
            let text = kept_text(origin, url);
            assert!(text.starts_with("__Host-switchboard="), "{text}");
            assert!(
                text.ends_with("; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=86400"),
                "{text}"
            );
            assert!(!text.contains("Domain"), "{text}");
        }
        let text = kept_text("http://localhost:8080", "http://localhost:8080");
        assert!(
            text.starts_with("switchboard=")
                && !text.contains("Secure")
                && text.contains("; HttpOnly; SameSite=Lax")
        );
    }

    #[test]
    fn https_installation_ignores_the_plain_cookie_name() {
        let token = RandomToken::generate();
        let plain = headers(&[(
            header::COOKIE,
            &format!("a=b; switchboard={}", token.expose()),
        )]);
        assert!(session_tokens(&plain, &config("http://localhost:8080")) == [token.clone()]);
        assert!(session_tokens(&plain, &config("https://x.example")).is_empty());
        let secure = headers(&[(
            header::COOKIE,
            &format!("__Host-switchboard={}; c=d", token.expose()),
        )]);
        assert!(session_tokens(&secure, &config("https://x.example")) == [token]);
    }

    #[test]
    fn malformed_cookie_is_no_session() {
        for cookie in [
            "switchboard=",
            "switchboard",
            "switchboard=x",
            "other=1",
            "",
            ";;=;",
        ] {
            assert!(
                session_tokens(&headers(&[(header::COOKIE, cookie)]), &config("")).is_empty(),
                "{cookie}"
            );
        }
    }
}
