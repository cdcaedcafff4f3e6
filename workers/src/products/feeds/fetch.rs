//! One fetch of a feed's address: no proxy, no cookie, no redirect that is not judged like the first address, bounded in
//! time and size by its reader.

use std::{error::Error, sync::Arc, time::Duration};

use http::{StatusCode, header};
use reqwest::{Client, Response, redirect::Policy};
use switchboard_backends::products::{FeedRefresh, config::ProductsConfig};
use switchboard_schemas::network::Network;

use super::{
    address::{Reach, Refused, check_url, may_reach},
    resolver::{CheckedResolver, Lookup},
};

/// Shops move their files; more steps than this are a loop.
const REDIRECTS_MAX: usize = 3;
/// Longest value of a header that is kept, in bytes.
const VALIDATOR_BYTES_MAX: usize = 512;
const USER_AGENT: &str = concat!("switchboard-feeds/", env!("CARGO_PKG_VERSION"));

/// Fetches feeds.
pub(super) struct Fetcher {
    public: Client,
    allowed_only: Client,
    allowed: Arc<[Network]>,
}

/// What a server gave.
pub(super) enum Fetched {
    /// Nothing has changed since the last time.
    Unchanged,
    /// The feed, whose body is still to be read.
    Feed(Box<Response>),
}

/// Why a feed was not fetched, in words for the shop's administrator.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the server answered {0}")]
    Status(StatusCode),
    #[error("the server sends from one address to the next")]
    Redirects,
    #[error("the server sent a compressed feed")]
    Compressed,
    #[error("the server cannot be reached")]
    Unreachable,
    #[error("the transfer broke off")]
    BrokenOff,
}

impl Fetcher {
    /// A fetcher within these bounds. Errors: no TLS provider is installed.
    pub(super) fn new(
        config: &ProductsConfig,
        lookup: &Arc<dyn Lookup>,
    ) -> Result<Self, reqwest::Error> {
        let allowed: Arc<[Network]> = config.feed_private_networks.clone().into();
        let client = |reach| {
            let resolver = CheckedResolver {
                lookup: Arc::clone(lookup),
                reach,
                allowed: Arc::clone(&allowed),
            };
            Client::builder()
                .dns_resolver(Arc::new(resolver))
                .redirect(Policy::none())
                .no_proxy()
                .referer(false)
                .user_agent(USER_AGENT)
                .https_only(reach == Reach::Public)
                .pool_max_idle_per_host(0)
                .connect_timeout(Duration::from_millis(config.feed_connect_timeout_ms))
                .build()
        };
        Ok(Self {
            public: client(Reach::Public)?,
            allowed_only: client(Reach::Allowed)?,
            allowed,
        })
    }

    /// Asks for a feed, unless it is as it was at the fetch `last`.
    pub(super) async fn fetch(
        &self,
        url: &str,
        last: Option<&FeedRefresh>,
    ) -> Result<Fetched, FetchError> {
        let mut target = check_url(url, &self.allowed)?;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.ask(&target.0, target.1, last).await?;
            let status = response.status();
            if status == StatusCode::NOT_MODIFIED && last.is_some() {
                return Ok(Fetched::Unchanged);
            }
            if !status.is_redirection() {
                return accept(response);
            }
            let location = response
                .headers()
                .get(header::LOCATION)
                .and_then(|location| location.to_str().ok());
            let next = location
                .and_then(|location| target.0.join(location).ok())
                .ok_or(FetchError::Status(status))?;
            target = check_url(next.as_str(), &self.allowed)?;
        }
        Err(FetchError::Redirects)
    }

    async fn ask(
        &self,
        url: &reqwest::Url,
        reach: Reach,
        last: Option<&FeedRefresh>,
    ) -> Result<Response, FetchError> {
        let client = if reach == Reach::Public {
            &self.public
        } else {
            &self.allowed_only
        };
        let mut request = client
            .get(url.clone())
            .header(header::ACCEPT, "text/csv, application/json, */*;q=0.5");
        if let Some(etag) = last.and_then(|last| last.etag.as_deref()) {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        if let Some(moment) = last.and_then(|last| last.last_modified.as_deref()) {
            request = request.header(header::IF_MODIFIED_SINCE, moment);
        }
        let response = request.send().await.map_err(|error| class(&error))?;
        // The resolver has judged it; this is the socket's own word.
        match response.remote_addr() {
            Some(peer) if !may_reach(peer.ip(), reach, &self.allowed) => {
                Err(Refused::Network.into())
            }
            _ => Ok(response),
        }
    }
}

/// A header by which the next fetch can ask whether anything changed.
pub(super) fn validator(response: &Response, name: header::HeaderName) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    (value.len() <= VALIDATOR_BYTES_MAX).then(|| value.to_owned())
}

fn accept(response: Response) -> Result<Fetched, FetchError> {
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status()));
    }
    if response
        .headers()
        .get(header::CONTENT_ENCODING)
        .is_some_and(|coding| coding != "identity")
    {
        return Err(FetchError::Compressed);
    }
    Ok(Fetched::Feed(Box::new(response)))
}

/// The library's texts hold addresses, which would tell what lies inside.
fn class(error: &reqwest::Error) -> FetchError {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(inner) = cause {
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return FetchError::Refused(*refused);
        }
        cause = inner.source();
    }
    FetchError::Unreachable
}
