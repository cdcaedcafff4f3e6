//! Fetches a feed URL without proxy or cookies. Redirect targets are checked like the first URL;
//! the reader bounds time and size.

use std::{sync::Arc, time::Duration};

use http::{StatusCode, header};
use reqwest::{Client, Response, redirect::Policy};
use switchboard_backends::products::{FeedRefresh, config::ProductsConfig};
use switchboard_schemas::network::IpNetwork;

use crate::outgoing::{
    AddressReach, CheckedResolver, HostLookup, UrlRefusal, check_feed_url, may_reach,
};

/// Most redirects of one fetch.
const REDIRECTS_MAX: usize = 3;
/// Longest `ETag` or `Last-Modified` value that is stored, in bytes.
const VALIDATOR_BYTES_MAX: usize = 512;
const USER_AGENT: &str = concat!("switchboard-feeds/", env!("CARGO_PKG_VERSION"));

/// HTTP clients for feeds: one for public addresses and one for networks that the operator allows.
pub(super) struct FeedFetcher {
    public: Client,
    allowed_only: Client,
    allowed: Arc<[IpNetwork]>,
}

pub(super) enum FeedResponse {
    /// The feed has not changed since the last fetch.
    Unchanged,
    /// The response with the feed, whose body is still to be read.
    Feed(Box<Response>),
}

/// An error of a fetch, with a message for the shop's administrator.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error(transparent)]
    Refused(#[from] UrlRefusal),
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

impl FeedFetcher {
    /// Creates a fetcher with the bounds of `config`. Fails if no TLS provider is installed.
    pub(super) fn new(
        config: &ProductsConfig,
        lookup: &Arc<dyn HostLookup>,
    ) -> Result<Self, reqwest::Error> {
        let allowed: Arc<[IpNetwork]> = config.feed_private_networks.clone().into();
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
                .https_only(reach == AddressReach::Public)
                .pool_max_idle_per_host(0)
                .connect_timeout(Duration::from_millis(config.feed_connect_timeout_ms))
                .build()
        };
        Ok(Self {
            public: client(AddressReach::Public)?,
            allowed_only: client(AddressReach::Allowed)?,
            allowed,
        })
    }

    /// Requests a feed, with the validators of the fetch `last` so that an unchanged feed is not
    /// transferred.
    pub(super) async fn fetch(
        &self,
        url: &str,
        last: Option<&FeedRefresh>,
    ) -> Result<FeedResponse, FetchError> {
        let mut target = check_feed_url(url, &self.allowed)?;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.send_request(&target.0, target.1, last).await?;
            let status = response.status();
            if status == StatusCode::NOT_MODIFIED && last.is_some() {
                return Ok(FeedResponse::Unchanged);
            }
            if !status.is_redirection() {
                return check_response(response);
            }
            let location = response
                .headers()
                .get(header::LOCATION)
                .and_then(|location| location.to_str().ok());
            let next = location
                .and_then(|location| target.0.join(location).ok())
                .ok_or(FetchError::Status(status))?;
            target = check_feed_url(next.as_str(), &self.allowed)?;
        }
        Err(FetchError::Redirects)
    }

    async fn send_request(
        &self,
        url: &reqwest::Url,
        reach: AddressReach,
        last: Option<&FeedRefresh>,
    ) -> Result<Response, FetchError> {
        let client = if reach == AddressReach::Public {
            &self.public
        } else {
            &self.allowed_only
        };
        let mut request = client.get(url.clone()).header(
            header::ACCEPT,
            "text/csv, application/json, application/xml, */*;q=0.5",
        );
        if let Some(etag) = last.and_then(|last| last.etag.as_deref()) {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        if let Some(moment) = last.and_then(|last| last.last_modified.as_deref()) {
            request = request.header(header::IF_MODIFIED_SINCE, moment);
        }
        let response = request
            .send()
            .await
            .map_err(|error| classify_error(&error))?;
        // The resolver has checked the addresses; this checks the address that is really connected.
        match response.remote_addr() {
            Some(peer) if !may_reach(peer.ip(), reach, &self.allowed) => {
                Err(UrlRefusal::Network.into())
            }
            _ => Ok(response),
        }
    }
}

/// Returns a validator header (`ETag`, `Last-Modified`) of bounded length for the next fetch.
pub(super) fn validator(response: &Response, name: header::HeaderName) -> Option<String> {
    let value = response.headers().get(name)?.to_str().ok()?;
    (value.len() <= VALIDATOR_BYTES_MAX).then(|| value.to_owned())
}

fn check_response(response: Response) -> Result<FeedResponse, FetchError> {
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
    Ok(FeedResponse::Feed(Box::new(response)))
}

/// Maps a library error to one without addresses, which would reveal internal networks.
fn classify_error(error: &reqwest::Error) -> FetchError {
    UrlRefusal::find_in(error).map_or(FetchError::Unreachable, FetchError::Refused)
}
