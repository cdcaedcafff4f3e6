//! Every figure of the ingress that an operator can set, with its unit and its usual value.

use std::{net::SocketAddr, time::Duration};

use serde::{Deserialize, Serialize};
use switchboard_backends::products::config::ProductsConfig;

use crate::client_address::Network;

/// Section `[ingress]` of the configuration file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IngressConfig {
    /// Address of the public API.
    pub listen: SocketAddr,
    /// Proxies that may tell the client's address (`X-Forwarded-For`): addresses or networks such as `10.0.0.0/8`.
    pub trusted_proxies: Vec<Network>,
    /// Connections that are open at once; more of them wait in the kernel.
    pub connections_max: usize,
    /// Keys, or administrator's tokens, that one address may get wrong in a minute, for each of the two; 0: any number.
    pub failed_authentications_per_minute: u32,
    /// Sessions without a conversation that one address may ask an organization for in a minute; 0: any number.
    pub unknown_sessions_per_minute: u32,
    /// How long a visitor token opens anything.
    pub visitor_token_lifetime_ms: u64,
    /// How long a page's visitor may stay away and still be the same one.
    pub visitor_secret_lifetime_ms: u64,
    /// Visitor tokens that one address may ask for in a minute; 0: any number.
    pub visitor_tokens_per_address_per_minute: u32,
    /// Visitors whom one agent may meet for the first time in a minute; 0: any number.
    pub new_visitors_per_site_per_minute: u32,
    /// Messages that the visitors behind one address may send to one agent in a minute; 0: any number. Less than what
    /// the site may have, so that no address can use that up.
    pub visitor_chats_per_address_per_minute: u32,
    /// Messages that all visitors of one agent's pages may send in a minute; 0: any number.
    pub visitor_chats_per_site_per_minute: u32,
    /// Where a browser reaches the dashboard, for the links that are made; never read from a file of its own.
    #[serde(skip)]
    pub dashboard_url: String,
    /// How long a session of the dashboard may stay unused.
    pub session_idle_ms: u64,
    /// How long a session of the dashboard lasts, however busy it is.
    pub session_lifetime_ms: u64,
    /// How long an invitation works.
    pub invitation_lifetime_ms: u64,
    /// How long a link works that signs in or sets another password.
    pub sign_in_link_lifetime_ms: u64,
    /// Attempts to prove who one is that an account may see in 15 minutes, right ones included; 0: any number.
    pub sign_ins_per_account: u32,
    /// The same for an address.
    pub sign_ins_per_address: u32,
    /// Drafts and teams that one person may try in a minute; 0: any number.
    pub trials_per_minute: u32,
    /// Where a browser reaches the public API, for a dashboard on a port of its own; never read from a file of its own.
    #[serde(skip)]
    pub public_url: String,
    /// How long the head of a request may take, and a new connection may stay silent.
    pub header_timeout_ms: u64,
    /// How long a connection may bring no further request before it is to end; what is open on it may finish.
    pub idle_timeout_ms: u64,
    /// How long a body may take.
    pub body_timeout_ms: u64,
    /// Largest body of the public API, in bytes.
    pub body_bytes_max: usize,
    /// Largest document of the administrative API, in bytes.
    pub admin_body_bytes_max: usize,
    /// How long a client may leave what was sent to it unacknowledged.
    pub stalled_client_timeout_ms: u64,
    /// Requests that one HTTP/2 connection may have open.
    pub http2_streams_max: u32,
    /// How long an accepted message may take to be durable; with the note that voids it the client has its 503 within 3 s.
    pub publish_timeout_ms: u64,
    /// How long a reply may stay unheard of before its request is refused; the message is answered all the same.
    pub first_frame_timeout_ms: u64,
    /// Silence after which a reply's log is read, once in every such time; longer than the second between two beats of a
    /// worker, or waiting would read it all the time.
    pub log_poll_ms: u64,
    /// How often the log is read for a reader whose reply is pushed to another ingress.
    pub reader_poll_ms: u64,
    /// Silence after which a reply that was heard of is given to another worker.
    pub takeover_after_ms: u64,
    /// How often one reply is given to another worker.
    pub takeovers_max: u32,
    /// How often the store is asked for a finished reply while the relay is away.
    pub store_poll_ms: u64,
    /// Silence after which a reply that was heard of is given up.
    pub silence_timeout_ms: u64,
    /// How long a message may wait for its turn.
    pub queue_timeout_ms: u64,
    /// How long a reply may take from its turn on, its worker's own limit included.
    pub answer_timeout_ms: u64,
    /// Frames that may wait for a slow client before its reply is read from the log instead.
    pub reply_queue_frames_max: usize,
    /// How long a change of metadata may take.
    pub patch_timeout_ms: u64,
    /// How long open replies may go on once the process is told to stop.
    pub drain_ms: u64,
    /// The section `[products]`, which has its own place in the file.
    #[serde(skip)]
    pub products: ProductsConfig,
}

impl Default for IngressConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            trusted_proxies: Vec::new(),
            connections_max: 16_384,
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
            public_url: String::new(),
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
            products: ProductsConfig::default(),
        }
    }
}

impl IngressConfig {
    /// The keys whose value cannot work, each with the reason.
    pub fn mistakes(&self) -> Vec<String> {
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
    fn the_usual_values_are_without_mistakes_and_a_zero_is_named_with_its_key() {
        assert!(IngressConfig::default().mistakes().is_empty());
        let config = IngressConfig {
            log_poll_ms: 0,
            ..IngressConfig::default()
        };
        assert_eq!(config.mistakes(), ["ingress.log_poll_ms must not be 0"]);
    }

    #[test]
    fn an_unknown_key_is_refused() {
        assert!(serde_json::from_str::<IngressConfig>(r#"{"drain_ms": 1}"#).is_ok());
        assert!(serde_json::from_str::<IngressConfig>(r#"{"drain": 1}"#).is_err());
    }
}
