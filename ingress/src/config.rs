//! Settings of the ingress with units and default values.

use std::{net::SocketAddr, time::Duration};

use serde::{Deserialize, Serialize};
use switchboard_backends::products::config::ProductsConfig;
use switchboard_schemas::network::IpNetwork;

use crate::ceilings::MemberCeilings;

/// Section `[ingress]` of the configuration file: the HTTP server and its limits.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IngressConfig {
    /// Listen address of the public API.
    pub listen: SocketAddr,
    /// Proxies that are trusted to report the client's address (`X-Forwarded-For`): addresses or
    /// networks such as `10.0.0.0/8`.
    pub trusted_proxies: Vec<IpNetwork>,
    /// Maximum number of open connections; further ones wait in the kernel.
    pub connections_max: usize,
    /// Maximum number of open connections of one address that is not a trusted proxy; 0: three
    /// quarters of all.
    pub connections_per_address_max: usize,
    /// Invalid keys, and separately admin tokens and links, per address and minute; 0: unlimited.
    pub failed_authentications_per_minute: u32,
    /// Unknown sessions that one address may request from an organization per minute; 0: unlimited.
    pub unknown_sessions_per_minute: u32,
    /// Lifetime of a visitor token.
    pub visitor_token_lifetime_ms: u64,
    /// Lifetime of a visitor secret, which identifies a returning visitor.
    pub visitor_secret_lifetime_ms: u64,
    /// Visitor tokens that one address may request per minute; 0: unlimited.
    pub visitor_tokens_per_address_per_minute: u32,
    /// New visitors of one agent per minute; 0: unlimited.
    pub new_visitors_per_site_per_minute: u32,
    /// Messages per minute from one address to one agent; 0: unlimited. Lower than the limit per
    /// site, so that one address cannot use up that one.
    pub visitor_chats_per_address_per_minute: u32,
    /// Messages per minute from all visitors of one agent's pages; 0: unlimited.
    pub visitor_chats_per_site_per_minute: u32,
    /// Base URL of the dashboard, for links; set from another section.
    #[serde(skip)]
    pub dashboard_url: String,
    /// Idle timeout of a dashboard session.
    pub session_idle_ms: u64,
    /// Maximum lifetime of a dashboard session.
    pub session_lifetime_ms: u64,
    /// Lifetime of an invitation.
    pub invitation_lifetime_ms: u64,
    /// Lifetime of sign-in and password-reset links.
    pub sign_in_link_lifetime_ms: u64,
    /// Sign-in attempts without a delay per account and address in 15 minutes, successful ones
    /// included; 0: unlimited.
    pub sign_ins_per_account: u32,
    /// Sign-in attempts without a delay per address in 15 minutes; 0: unlimited.
    pub sign_ins_per_address: u32,
    /// Playground runs per person and minute; 0: unlimited.
    pub trials_per_minute: u32,
    /// Requests of one signed-in person to the admin API per minute; 0: unlimited. The admin token
    /// is not counted.
    pub admin_requests_per_minute: u32,
    /// Base URL of the public API, for a dashboard on its own port; set from another section.
    #[serde(skip)]
    pub public_url: String,
    /// True if agents without a provider are answered by the built-in demo model; set from another
    /// section.
    #[serde(skip)]
    pub is_demo: bool,
    /// Timeout for a request head, and for the first byte of a new connection.
    pub header_timeout_ms: u64,
    /// Idle time without a new request after which a connection is closed; open requests may
    /// finish.
    pub idle_timeout_ms: u64,
    /// Timeout for receiving a request body.
    pub body_timeout_ms: u64,
    /// Maximum body size of the public API, in bytes.
    pub body_bytes_max: usize,
    /// Maximum body size of the admin API, in bytes.
    pub admin_body_bytes_max: usize,
    /// Time after which a client that acknowledges no data is disconnected.
    pub stalled_client_timeout_ms: u64,
    /// Maximum number of concurrent requests per HTTP/2 connection.
    pub http2_streams_max: u32,
    /// Timeout of a publish; including the void of a failed publish, the client receives its 503
    /// within 3 s.
    pub publish_timeout_ms: u64,
    /// Time without a sign of a worker after which the request fails; the message is still
    /// processed.
    pub first_frame_timeout_ms: u64,
    /// Interval of reading the reply log during silence; longer than a worker's heartbeat interval
    /// of 1 s, so that waiting does not cause constant reads.
    pub log_poll_ms: u64,
    /// Interval of reading the log for readers whose frames are pushed to another ingress.
    pub reader_poll_ms: u64,
    /// Silence of a started reply after which it is handed to another worker.
    pub takeover_after_ms: u64,
    /// Maximum number of times a reply is handed to another worker.
    pub takeovers_max: u32,
    /// Interval of polling the store for a final reply while Redis is unavailable.
    pub store_poll_ms: u64,
    /// Silence of a started reply after which the request fails.
    pub silence_timeout_ms: u64,
    /// Maximum time a message may wait behind earlier ones of its conversation.
    pub queue_timeout_ms: u64,
    /// Maximum duration of a reply once it starts, including the worker's own limit.
    pub answer_timeout_ms: u64,
    /// Frames buffered for a slow client before its reply is read from the log instead.
    pub reply_queue_frames_max: usize,
    /// Timeout of waiting until a metadata change is applied.
    pub patch_timeout_ms: u64,
    /// Time that open replies have to finish at shutdown.
    pub drain_ms: u64,
    /// Settings of section `[ceilings]`, copied here.
    #[serde(skip)]
    pub ceilings: MemberCeilings,
    /// Settings of section `[products]`, copied here.
    #[serde(skip)]
    pub products: ProductsConfig,
}

impl Default for IngressConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            trusted_proxies: Vec::new(),
            connections_max: 16_384,
            connections_per_address_max: 0,
            failed_authentications_per_minute: 100,
            unknown_sessions_per_minute: 600,
            visitor_token_lifetime_ms: 900_000,
            visitor_secret_lifetime_ms: 2_592_000_000,
            visitor_tokens_per_address_per_minute: 300,
            new_visitors_per_site_per_minute: 1200,
            visitor_chats_per_address_per_minute: 300,
            visitor_chats_per_site_per_minute: 1200,
            dashboard_url: String::new(),
            session_idle_ms: 28_800_000,
            session_lifetime_ms: 86_400_000,
            invitation_lifetime_ms: 604_800_000,
            sign_in_link_lifetime_ms: 86_400_000,
            sign_ins_per_account: 20,
            sign_ins_per_address: 100,
            trials_per_minute: 60,
            admin_requests_per_minute: 1200,
            public_url: String::new(),
            is_demo: false,
            header_timeout_ms: 10_000,
            idle_timeout_ms: 60_000,
            body_timeout_ms: 10_000,
            body_bytes_max: 256 << 10,
            admin_body_bytes_max: 8 << 20,
            stalled_client_timeout_ms: 20_000,
            http2_streams_max: 100,
            publish_timeout_ms: 2500,
            first_frame_timeout_ms: 20_000,
            log_poll_ms: 1250,
            reader_poll_ms: 100,
            takeover_after_ms: 3000,
            takeovers_max: 2,
            store_poll_ms: 500,
            silence_timeout_ms: 30_000,
            queue_timeout_ms: 600_000,
            answer_timeout_ms: 125_000,
            reply_queue_frames_max: 64,
            patch_timeout_ms: 3000,
            drain_ms: 30_000,
            ceilings: MemberCeilings::default(),
            products: ProductsConfig::default(),
        }
    }
}

impl IngressConfig {
    /// Returns one message per invalid setting.
    pub fn validation_errors(&self) -> Vec<String> {
        let must_not_be_zero = [
            ("connections_max", self.connections_max as u64),
            ("visitor_token_lifetime_ms", self.visitor_token_lifetime_ms),
            (
                "visitor_secret_lifetime_ms",
                self.visitor_secret_lifetime_ms,
            ),
            ("session_idle_ms", self.session_idle_ms),
            ("session_lifetime_ms", self.session_lifetime_ms),
            ("invitation_lifetime_ms", self.invitation_lifetime_ms),
            ("sign_in_link_lifetime_ms", self.sign_in_link_lifetime_ms),
            ("header_timeout_ms", self.header_timeout_ms),
            ("idle_timeout_ms", self.idle_timeout_ms),
            ("body_timeout_ms", self.body_timeout_ms),
            ("body_bytes_max", self.body_bytes_max as u64),
            ("admin_body_bytes_max", self.admin_body_bytes_max as u64),
            ("stalled_client_timeout_ms", self.stalled_client_timeout_ms),
            ("http2_streams_max", self.http2_streams_max.into()),
            ("publish_timeout_ms", self.publish_timeout_ms),
            ("first_frame_timeout_ms", self.first_frame_timeout_ms),
            ("log_poll_ms", self.log_poll_ms),
            ("reader_poll_ms", self.reader_poll_ms),
            ("takeover_after_ms", self.takeover_after_ms),
            ("store_poll_ms", self.store_poll_ms),
            ("silence_timeout_ms", self.silence_timeout_ms),
            ("queue_timeout_ms", self.queue_timeout_ms),
            ("answer_timeout_ms", self.answer_timeout_ms),
            ("reply_queue_frames_max", self.reply_queue_frames_max as u64),
            ("patch_timeout_ms", self.patch_timeout_ms),
        ];
        let zeros = must_not_be_zero.iter().filter(|(_, value)| *value == 0);
        zeros
            .map(|(key, _)| format!("ingress.{key} must not be 0"))
            .collect()
    }

    /// Returns the maximum number of open connections of one address.
    pub(crate) fn connections_per_address(&self) -> usize {
        match self.connections_per_address_max {
            0 => self.connections_max.div_ceil(4).saturating_mul(3),
            some => some,
        }
    }

    pub(crate) const fn publish_timeout(&self) -> Duration {
        Duration::from_millis(self.publish_timeout_ms)
    }

    pub(crate) const fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_a_zero_is_reported_with_its_key() {
        assert!(IngressConfig::default().validation_errors().is_empty());
        let config = IngressConfig {
            log_poll_ms: 0,
            ..IngressConfig::default()
        };
        assert_eq!(
            config.validation_errors(),
            ["ingress.log_poll_ms must not be 0"]
        );
    }

    #[test]
    fn unknown_key_is_rejected() {
        assert!(serde_json::from_str::<IngressConfig>(r#"{"drain_ms": 1}"#).is_ok());
        assert!(serde_json::from_str::<IngressConfig>(r#"{"drain": 1}"#).is_err());
    }
}
