//! Protection against cross-site request forgery. Browsers attach our cookie to requests of other
//! sites too, and mark those requests in headers that pages cannot set.

use http::{HeaderMap, Method, Uri, header};

use super::cookie::may_change_data;
use crate::{
    config::IngressConfig,
    http::{
        ApiError, ApiResult, ErrorCode,
        body::has_json_suffix,
        origin::{only_text, url_origin},
    },
};

const SEC_FETCH_SITE: &str = "sec-fetch-site";
/// Marks an upload of our own pages: HTML forms cannot send it, and pages of other sites would need
/// a CORS preflight for it.
const UPLOAD_MARK: &str = "x-requested-with";
/// The media type of uploads, which HTML forms can send.
const FORM: &str = "multipart/form-data";

/// Media types that HTML forms cannot send; pages of other sites would need a CORS preflight, which
/// is rejected.
const NON_FORM_MEDIA_TYPES: [&str; 11] = [
    "application/json",
    "application/jsonl",
    "application/octet-stream",
    "application/rss+xml",
    "application/vnd.ms-excel",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/x-ndjson",
    "application/xml",
    "text/csv",
    "text/tab-separated-values",
    "text/xml",
];

/// Rejects changing requests that another site's page may have sent: the origin must be ours, and
/// the media type must be one that forms cannot send. Clients without these headers are no current
/// browsers and must use a token.
pub(crate) fn check_same_site(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    config: &IngressConfig,
) -> ApiResult<()> {
    if !may_change_data(method) {
        return Ok(());
    }
    if !is_same_origin(uri, headers, config) {
        return Err(ApiError::new(
            ErrorCode::DomainNotAllowed,
            "the request was not sent by a page of this service, which Sec-Fetch-Site: same-origin shows",
        ));
    }
    // Forms can send three media types, none of them listed here, and no DELETE.
    if *method != Method::DELETE && !is_beyond_forms(headers) {
        return Err(ApiError::new(
            ErrorCode::UnsupportedMediaType,
            "the body must be application/json",
        ));
    }
    Ok(())
}

fn is_same_origin(uri: &Uri, headers: &HeaderMap, config: &IngressConfig) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        // `none` is a direct user action, for instance a reload.
        return site == "same-origin" || site == "none";
    }
    let Some(origin) = only_text(headers, header::ORIGIN) else {
        return false;
    };
    let host = only_text(headers, header::HOST)
        .or_else(|| uri.authority().map(http::uri::Authority::as_str));
    let of_this_host = origin.split_once("://").is_some_and(|(scheme, rest)| {
        ["http", "https"].contains(&scheme)
            && host.is_some_and(|host| rest.eq_ignore_ascii_case(host))
    });
    // A proxy may have replaced the host that the browser requested.
    of_this_host
        || url_origin(&config.dashboard_url).is_some_and(|own| origin.eq_ignore_ascii_case(&own))
}

/// Returns true if no HTML form can send these headers.
fn is_beyond_forms(headers: &HeaderMap) -> bool {
    let text = only_text(headers, header::CONTENT_TYPE).unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    NON_FORM_MEDIA_TYPES.contains(&essence.as_str())
        || has_json_suffix(&essence)
        || (essence == FORM && headers.contains_key(UPLOAD_MARK))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn refusal(method: Method, pairs: &[(&'static str, &'static str)]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let config = IngressConfig {
            dashboard_url: "https://chat.example/base".into(),
            ..IngressConfig::default()
        };
        let uri = "/api/admin/organizations".parse().unwrap();
        check_same_site(&method, &uri, &headers, &config)
            .err()
            .map(|error| error.into_parts().status.as_u16())
    }

    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn own_pages_may_send_json_changes() {
        for pairs in [
            &[("sec-fetch-site", "same-origin")][..],
            &[("sec-fetch-site", "none")],
            &[
                ("origin", "http://localhost:8080"),
                ("host", "localhost:8080"),
            ],
            &[("origin", "https://chat.example"), ("host", "inside:8080")],
        ] {
            assert_eq!(
                refusal(Method::POST, &[pairs, &[JSON]].concat()),
                None,
                "{pairs:?}"
            );
            let products = ("content-type", "text/csv; charset=utf-8");
            assert_eq!(
                refusal(Method::PUT, &[pairs, &[products]].concat()),
                None,
                "{pairs:?}"
            );
            let upload = [("content-type", FORM), (UPLOAD_MARK, "switchboard")];
            let uploads = [pairs, &upload].concat();
            assert_eq!(refusal(Method::POST, &uploads), None, "{pairs:?}");
            assert_eq!(refusal(Method::DELETE, pairs), None, "{pairs:?}");
            for media_type in [
                "text/plain",
                "application/x-www-form-urlencoded",
                "multipart/form-data",
                "text/plain; application/json",
            ] {
                assert_eq!(
                    refusal(
                        Method::POST,
                        &[pairs, &[("content-type", media_type)]].concat()
                    ),
                    Some(415)
                );
            }
            assert_eq!(
                refusal(Method::PUT, pairs),
                Some(415),
                "without a media type"
            );
        }
    }

    #[test]
    fn requests_of_other_sites_may_only_read() {
        for pairs in [
            &[][..],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "https://chat.example"),
                ("host", "chat.example"),
            ],
            &[("origin", "null"), ("host", "localhost:8080")],
            &[
                ("origin", "http://localhost:8081"),
                ("host", "localhost:8080"),
            ],
            &[
                ("origin", "http://localhost:8080.evil.example"),
                ("host", "localhost:8080"),
            ],
            &[
                ("origin", "https://evil.example"),
                ("host", "localhost:8080"),
            ],
            &[
                ("origin", "http://localhost:8080"),
                ("origin", "https://evil.example"),
                ("host", "localhost:8080"),
            ],
            &[
                ("referer", "https://chat.example/"),
                ("host", "chat.example"),
            ],
        ] {
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                assert_eq!(
                    refusal(method, &[pairs, &[JSON]].concat()),
                    Some(403),
                    "{pairs:?}"
                );
            }
            assert_eq!(refusal(Method::GET, pairs), None);
        }
    }
}
