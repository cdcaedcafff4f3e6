//! `RateLimit-Policy` and `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers) of responses
//! to known keys, errors included.

use std::{fmt::Write, sync::Arc};

use axum::{extract::Request, middleware::Next, response::Response};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use switchboard_backends::limiter::{RateLimitOutcome, RequestQuota};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// Collects the quotas of a request; clones share the collection.
#[derive(Clone, Default)]
pub(crate) struct RateLimitHeaders(Arc<Mutex<Vec<QuotaReport>>>);

struct QuotaReport {
    name: &'static str,
    quota: RequestQuota,
    verdict: Option<RateLimitOutcome>,
}

/// Layer that writes the headers: extractors apply the limits, and only a layer sees every
/// response.
pub(crate) async fn write_limit_headers(mut request: Request, next: Next) -> Response {
    let collector = RateLimitHeaders::default();
    request.extensions_mut().insert(collector.clone());
    let mut response = next.run(request).await;
    collector.write_headers(response.headers_mut());
    response
}

impl RateLimitHeaders {
    /// Returns the collector that the layer added to the request.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Adds a quota without its current usage.
    pub(super) fn add_policy(&self, name: &'static str, quota: RequestQuota) {
        self.add_report(QuotaReport {
            name,
            quota,
            verdict: None,
        });
    }

    /// Adds a quota with its remaining requests.
    pub(super) fn add_verdict(
        &self,
        name: &'static str,
        quota: RequestQuota,
        verdict: RateLimitOutcome,
    ) {
        self.add_report(QuotaReport {
            name,
            quota,
            verdict: Some(verdict),
        });
    }

    fn add_report(&self, report: QuotaReport) {
        self.0.lock().push(report);
    }

    fn write_headers(&self, headers: &mut HeaderMap) {
        let reports = self.0.lock();
        let (mut policies, mut states) = (String::new(), String::new());
        for QuotaReport {
            name,
            quota,
            verdict,
        } in reports.iter()
        {
            let _ = write!(
                with_separator(&mut policies),
                "\"{name}\";q={};w={}",
                quota.limit,
                quota.window.as_secs()
            );
            if let Some(verdict) = verdict {
                let reset = reset_seconds(verdict);
                let _ = write!(
                    with_separator(&mut states),
                    "\"{name}\";r={};t={reset}",
                    verdict.remaining
                );
            }
        }
        for (name, value) in [(POLICY, policies), (STATE, states)] {
            if let Some(value) = HeaderValue::from_str(&value)
                .ok()
                .filter(|value| !value.is_empty())
            {
                headers.insert(name, value);
            }
        }
    }
}

fn with_separator(list: &mut String) -> &mut String {
    if !list.is_empty() {
        list.push_str(", ");
    }
    list
}

/// Returns the seconds until the next request is possible, or until the full quota is available if
/// requests remain. The draft requires that an exhausted quota resets no later than its
/// `Retry-After`.
fn reset_seconds(verdict: &RateLimitOutcome) -> u128 {
    let wait = if verdict.remaining == 0 {
        verdict.retry_after
    } else {
        verdict.reset_after
    };
    wait.as_millis().div_ceil(1000).max(1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const QUOTA: RequestQuota = RequestQuota {
        limit: 60,
        window: Duration::from_secs(60),
    };

    fn verdict(remaining: u32) -> RateLimitOutcome {
        let (retry_after, reset_after) =
            (Duration::from_millis(1500), Duration::from_millis(30_001));
        RateLimitOutcome {
            admitted: remaining > 0,
            remaining,
            retry_after,
            reset_after,
        }
    }

    fn header_texts(reports: &RateLimitHeaders) -> (Option<String>, Option<String>) {
        let mut headers = HeaderMap::new();
        reports.write_headers(&mut headers);
        let text = |name| {
            headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        (text(POLICY), text(STATE))
    }

    #[test]
    fn headers_have_the_form_of_the_draft() {
        let reports = RateLimitHeaders::default();
        assert_eq!(header_texts(&reports), (None, None));
        reports.add_verdict("chat", QUOTA, verdict(12));
        assert_eq!(
            header_texts(&reports),
            (
                Some("\"chat\";q=60;w=60".into()),
                Some("\"chat\";r=12;t=31".into())
            )
        );
        reports.add_verdict("visitor", RequestQuota { limit: 2, ..QUOTA }, verdict(0));
        let expected = (
            "\"chat\";q=60;w=60, \"visitor\";q=2;w=60",
            "\"chat\";r=12;t=31, \"visitor\";r=0;t=2",
        );
        assert_eq!(
            header_texts(&reports),
            (Some(expected.0.into()), Some(expected.1.into()))
        );
    }

    #[test]
    fn unused_quota_has_a_policy_and_no_state() {
        let reports = RateLimitHeaders::default();
        reports.add_policy("config", QUOTA);
        assert_eq!(
            header_texts(&reports),
            (Some("\"config\";q=60;w=60".into()), None)
        );
    }
}
