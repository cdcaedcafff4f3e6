//! Origin allowlists of agents: entries of `allowedDomains` are compared with the browser's
//! `Origin` as parsed hosts. A text comparison would accept `evilshop.example` for `shop.example`.

use std::{fmt, net::Ipv6Addr, str::FromStr};

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use switchboard_schemas::{secret::InstallationSecret, visitor_token::OriginHash};
use utoipa::IntoParams;

/// Maximum size of an entry in bytes; host names have at most 253.
const ENTRY_BYTES_MAX: usize = 300;
const LABEL_BYTES_MAX: usize = 63;
const HOST_BYTES_MAX: usize = 253;

/// An entry of an agent's allowlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OriginPattern {
    scheme: WebScheme,
    host: HostPattern,
    port: u16,
}

/// Error for an entry that is not a valid origin pattern.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("must be an origin such as https://shop.example, shop.example or *.shop.example")]
pub(crate) struct InvalidOriginPattern;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WebScheme {
    Http,
    Https,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Exactly(String),
    /// Subdomains of this domain, but not the domain itself.
    Below(String),
}

#[derive(Debug, PartialEq, Eq)]
struct WebOrigin {
    scheme: WebScheme,
    host: String,
    port: u16,
}

/// The origin of the page that sends the request.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct OriginHeader {
    /// Set by browsers. If the agent has a list of allowed domains, other origins are rejected;
    /// requests without the header are accepted.
    #[param(rename = "Origin", value_type = String, required = false)]
    origin: Option<SentOrigin>,
}

/// The origin of a request; `None` if it is not exactly one web origin.
type SentOrigin = Option<WebOrigin>;

impl OriginHeader {
    fn from_headers(headers: &HeaderMap) -> Self {
        let parse = || only_text(headers, header::ORIGIN).and_then(WebOrigin::parse);
        Self {
            origin: has_origin(headers).then(parse),
        }
    }
}

/// Returns true if the allowlist permits the request's origin.
pub(crate) fn is_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    // Programs send no origin; it distinguishes pages and does not authenticate.
    let Some(parsed) = OriginHeader::from_headers(headers).origin else {
        return true;
    };
    if allowed.is_empty() {
        return true;
    }
    let patterns = allowed
        .iter()
        .filter_map(|entry| entry.parse::<OriginPattern>().ok());
    parsed.is_some_and(|origin| patterns.into_iter().any(|pattern| pattern.matches(&origin)))
}

/// Returns the text of a header that occurs exactly once.
pub(crate) fn only_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter().map(HeaderValue::to_str);
    match (values.next(), values.next()) {
        (Some(Ok(text)), None) => Some(text),
        _ => None,
    }
}

/// Returns scheme and authority of a URL.
pub(crate) fn url_origin(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    Some(format!("{}://{}", url.scheme_str()?, url.authority()?))
}

/// Returns the web origin of the page that sends the request.
pub(crate) fn page_origin(headers: &HeaderMap) -> Option<String> {
    let text = only_text(headers, header::ORIGIN)?;
    WebOrigin::parse(text).map(|_| text.to_ascii_lowercase())
}

/// Returns true if the request has an `Origin` header.
pub(crate) fn has_origin(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN)
}

/// Returns the fingerprint of the request's origin, which visitor tokens are bound to; `None`
/// without exactly one origin. Opaque origins, such as `null`, are compared as text.
pub(crate) fn origin_hash(headers: &HeaderMap, secret: &InstallationSecret) -> Option<OriginHash> {
    let text = only_text(headers, header::ORIGIN).filter(|text| !text.is_empty())?;
    let canonical =
        WebOrigin::parse(text).map_or_else(|| text.to_owned(), |origin| origin.to_string());
    Some(OriginHash::from_origin(secret, &canonical))
}

impl OriginPattern {
    fn matches(&self, origin: &WebOrigin) -> bool {
        let same_host = match &self.host {
            HostPattern::Exactly(host) => *host == origin.host,
            HostPattern::Below(domain) => origin
                .host
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        };
        same_host && self.scheme == origin.scheme && self.port == origin.port
    }
}

impl FromStr for OriginPattern {
    type Err = InvalidOriginPattern;

    fn from_str(entry: &str) -> Result<Self, InvalidOriginPattern> {
        let (scheme, authority) = split_scheme(entry);
        let (wildcard, authority) = match authority.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, authority),
        };
        let (host, port) = split_port(authority).ok_or(InvalidOriginPattern)?;
        // Without a dot the wildcard would match a whole top-level domain.
        let too_wide = wildcard && (!host.contains('.') || host.starts_with('['));
        if entry.len() > ENTRY_BYTES_MAX || too_wide {
            return Err(InvalidOriginPattern);
        }
        let scheme = match scheme {
            Some(scheme) => scheme.ok_or(InvalidOriginPattern)?,
            None if is_local(&host) => WebScheme::Http,
            None => WebScheme::Https,
        };
        let host = if wildcard {
            HostPattern::Below(host)
        } else {
            HostPattern::Exactly(host)
        };
        Ok(Self {
            scheme,
            host,
            port: port.unwrap_or(scheme.default_port()),
        })
    }
}

impl WebOrigin {
    /// Parses a web origin. Returns `None` for `null`, other schemes and malformed text.
    fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = split_scheme(text);
        let scheme = scheme??;
        let (host, port) = split_port(authority)?;
        Some(Self {
            scheme,
            host,
            port: port.unwrap_or(scheme.default_port()),
        })
    }
}

/// Canonical form: the port is always included.
impl fmt::Display for WebOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            WebScheme::Http => "http",
            WebScheme::Https => "https",
        };
        write!(formatter, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl WebScheme {
    const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Splits off the scheme. The outer option is `None` without a scheme, the inner one for schemes
/// other than http and https.
fn split_scheme(text: &str) -> (Option<Option<WebScheme>>, &str) {
    let Some((scheme, rest)) = text.split_once("://") else {
        return (None, text);
    };
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => Some(WebScheme::Http),
        "https" => Some(WebScheme::Https),
        _ => None,
    };
    (Some(scheme), rest)
}

fn split_port(authority: &str) -> Option<(String, Option<u16>)> {
    let host_end = authority.rfind(']').map_or(0, |end| end + 1);
    let (host, port) = match authority[host_end..].find(':') {
        Some(colon) => (
            &authority[..host_end + colon],
            Some(&authority[host_end + colon + 1..]),
        ),
        None => (authority, None),
    };
    let port = match port {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok()?)
        }
        Some(_) => return None,
        None => None,
    };
    parse_host(host).map(|host| (host, port))
}

fn parse_host(host: &str) -> Option<String> {
    if let Some(address) = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        return address
            .parse::<Ipv6Addr>()
            .ok()
            .map(|address| format!("[{address}]"));
    }
    let well_formed = host.len() <= HOST_BYTES_MAX && host.split('.').all(is_label);
    well_formed.then(|| host.to_ascii_lowercase())
}

/// Validates a host label; browsers send international names in their `xn--` form.
fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_local(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn allowed(entry: &str, origin: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, origin.parse().unwrap());
        is_allowed(&headers, &[entry.to_owned()])
    }

    #[test]
    fn entry_allows_only_its_own_origin() {
        for (entry, origin) in [
            ("https://shop.example", "https://shop.example"),
            ("https://shop.example:8443", "https://shop.example:8443"),
            ("shop.example", "https://shop.example"),
            ("Shop.Example", "https://SHOP.example:443"),
            ("shop.example:8443", "https://shop.example:8443"),
            ("localhost", "http://localhost"),
            ("localhost:3000", "http://localhost:3000"),
            ("*.shop.example", "https://a.shop.example"),
            ("*.shop.example", "https://a.b.shop.example"),
            ("[::1]:3000", "http://[::1]:3000"),
        ] {
            assert!(allowed(entry, origin), "{entry} {origin}");
        }
        for (entry, origin) in [
            ("https://shop.example", "http://shop.example"),
            ("https://shop.example", "https://shop.example:8443"),
            ("shop.example", "http://shop.example"),
            ("shop.example", "https://evilshop.example"),
            ("shop.example", "https://shop.example.evil.example"),
            ("shop.example", "https://shop.example."),
            ("shop.example", "null"),
            ("shop.example", "file://"),
            ("shop.example", "https://shop.example@evil.example"),
            ("*.shop.example", "https://shop.example"),
            ("*.shop.example", "https://.shop.example"),
            ("*.shop.example", "https://evilshop.example"),
            ("localhost:3000", "https://localhost:3000"),
        ] {
            assert!(!allowed(entry, origin), "{entry} {origin}");
        }
    }

    #[test]
    fn missing_origin_and_empty_list_are_allowed() {
        assert!(is_allowed(&HeaderMap::new(), &["shop.example".into()]));
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, "null".parse().unwrap());
        assert!(is_allowed(&headers, &[]));
    }

    #[test]
    fn request_with_two_origins_is_rejected() {
        let mut headers = HeaderMap::new();
        headers.append(header::ORIGIN, "https://shop.example".parse().unwrap());
        headers.append(header::ORIGIN, "https://evil.example".parse().unwrap());
        assert!(!is_allowed(&headers, &["shop.example".into()]));
    }

    #[test]
    fn meaningless_and_too_wide_entries_are_rejected() {
        for entry in [
            "",
            "*",
            "*.com",
            "https://*",
            "https://shop.example/",
            "https://shop.example/path",
            "shop example",
            "ftp://shop.example",
            "shop.example:99999",
            "shop.example:",
            "a@shop.example",
            "münchen.example",
            "-a.example",
            "*.*.example",
            "*.[::1]",
            "https://",
            "null/x",
        ] {
            // A colon without digits is an empty port, which parses to no number.
            assert_eq!(
                entry.parse::<OriginPattern>(),
                Err(InvalidOriginPattern),
                "{entry}"
            );
        }
    }

    #[test]
    fn page_fingerprint_ignores_the_spelling_of_the_origin() {
        let print = |origins: &[&str]| {
            let mut headers = HeaderMap::new();
            for origin in origins {
                headers.append(header::ORIGIN, origin.parse().unwrap());
            }
            origin_hash(&headers, &InstallationSecret::from_bytes([7; 32]))
        };
        let shop = print(&["https://shop.example"]);
        assert!(shop.is_some());
        assert_eq!(print(&["HTTPS://Shop.Example:443"]), shop);
        for other in [
            "http://shop.example",
            "https://shop.example:8443",
            "https://www.shop.example",
            "null",
        ] {
            assert!(
                print(&[other]).is_some() && print(&[other]) != shop,
                "{other}"
            );
        }
        for none in [
            &[][..],
            &[""],
            &["https://shop.example", "https://shop.example"],
        ] {
            assert_eq!(print(none), None, "{none:?}");
        }
    }

    proptest! {
        #[test]
        fn wildcard_allows_exactly_the_subdomains(labels in "([a-z]{1,3}\\.){0,3}", glue in "[a-z]?") {
            let origin = format!("https://{labels}{glue}shop.example");
            prop_assert_eq!(allowed("*.shop.example", &origin), !labels.is_empty() && glue.is_empty());
        }

        #[test]
        fn arbitrary_text_never_panics(entry: String) {
            let _ = entry.parse::<OriginPattern>();
            let _ = WebOrigin::parse(&entry);
        }
    }
}
