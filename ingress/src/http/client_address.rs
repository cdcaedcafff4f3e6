//! Client addresses: the connection's peer or the address that a trusted proxy reports, and their
//! stored form.

use std::{
    convert::Infallible,
    net::IpAddr,
    time::{Duration, Instant},
};

use axum::extract::FromRequestParts;
use http::{HeaderMap, request::Parts};
use parking_lot::Mutex;
use switchboard_schemas::network::{IpNetwork, mask_address};

use crate::config::IngressConfig;

/// Prefix length of an IPv6 network that usually belongs to one customer.
const COUNTED_BITS_V6: u8 = 64;
/// Prefix length of a whole IPv4 address, which is counted by itself.
const COUNTED_BITS_V4: u8 = 32;
/// Prefix lengths of stored addresses: enough for a region, too little for a person.
const KEPT_BITS_V4: u8 = 24;
const KEPT_BITS_V6: u8 = 48;
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Minimum time between two warnings of ignored headers. A forger cannot use up the only one.
const FORWARDING_WARNING_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Peer address of the request's connection, set by the accept loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Rate-limit subject of requests without a key: the client's address, or its network for IPv6.
/// `None` if the connection is unknown, as in a router without a server.
#[derive(Clone, Debug)]
pub(crate) struct RateLimitAddress(pub(crate) Option<String>);

impl<S: AsRef<IngressConfig> + Send + Sync> FromRequestParts<S> for RateLimitAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<PeerAddress>();
        let address = peer
            .map(|peer| client_address(peer.0, &parts.headers, &state.as_ref().trusted_proxies));
        Ok(Self(address.map(rate_limit_key)))
    }
}

/// Returns the client's address: the last address in the proxy chain that was not reported by an
/// untrusted hop.
pub(crate) fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNetwork]) -> IpAddr {
    let mut client = peer.to_canonical();
    let hops: Vec<&str> = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    for hop in hops.iter().rev() {
        if !is_trusted(client, trusted) {
            break;
        }
        // Entries left of a malformed hop are not trustworthy.
        let Some(address) = parse_hop(hop.trim()) else {
            break;
        };
        client = address;
    }
    client
}

fn is_trusted(address: IpAddr, trusted: &[IpNetwork]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// A warning that a peer reports clients and is not trusted: all of them share its rate limits.
#[derive(Default)]
pub(crate) struct ForwardingWarning {
    given_at: Mutex<Option<Instant>>,
}

impl ForwardingWarning {
    /// Warns of a request whose `X-Forwarded-For` is ignored, at most once an hour: the peer may
    /// also be a visitor who forges the header.
    pub(crate) fn check(&self, peer: IpAddr, headers: &HeaderMap, trusted: &[IpNetwork]) {
        let peer = peer.to_canonical();
        let is_ignored = headers.contains_key(FORWARDED_FOR) && !is_trusted(peer, trusted);
        if is_ignored && self.is_due(Instant::now()) {
            // The network only, as the peer may be a visitor.
            tracing::warn!(
                peer = truncate_address(peer),
                "ignored X-Forwarded-For of a peer that is no trusted proxy: if it is your proxy, \
                 add its address to SWITCHBOARD__INGRESS__TRUSTED_PROXIES"
            );
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let mut given_at = self.given_at.lock();
        let is_due =
            given_at.is_none_or(|at| now.duration_since(at) >= FORWARDING_WARNING_INTERVAL);
        if is_due {
            *given_at = Some(now);
        }
        is_due
    }
}

/// Returns the address of a request's client in its stored form.
pub(crate) fn stored_address(parts: &Parts, config: &IngressConfig) -> Option<String> {
    let peer = parts.extensions.get::<PeerAddress>()?;
    let address = client_address(peer.0, &parts.headers, &config.trusted_proxies);
    Some(truncate_address(address))
}

/// Truncates an address to its stored form.
fn truncate_address(address: IpAddr) -> String {
    mask_address(address.to_canonical(), KEPT_BITS_V4, KEPT_BITS_V6).to_string()
}

fn rate_limit_key(address: IpAddr) -> String {
    counted_network(address).to_string()
}

/// Returns the network that counts as one client.
pub(crate) fn counted_network(address: IpAddr) -> IpAddr {
    mask_address(address.to_canonical(), COUNTED_BITS_V4, COUNTED_BITS_V6)
}

/// Parses one hop; some proxies add a port.
fn parse_hop(hop: &str) -> Option<IpAddr> {
    let bare = hop
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(hop);
    let address = bare.parse().ok().or_else(|| {
        hop.parse::<std::net::SocketAddr>()
            .ok()
            .map(|socket| socket.ip())
    });
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn client(peer: &str, forwarded: &[&'static str], trusted: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        let trusted: Vec<IpNetwork> = trusted.iter().map(|text| text.parse().unwrap()).collect();
        client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn forwarded_address_is_accepted_from_trusted_proxies_only() {
        assert_eq!(client("203.0.113.9", &["198.51.100.1"], &[]), "203.0.113.9");
        assert_eq!(
            client("10.1.2.3", &["198.51.100.1"], &["10.0.0.0/8"]),
            "198.51.100.1"
        );
        assert_eq!(
            client("::ffff:10.1.2.3", &["198.51.100.1"], &["10.0.0.0/8"]),
            "198.51.100.1"
        );
    }

    #[test]
    fn address_written_by_the_client_is_ignored() {
        let forged = ["1.2.3.4, 198.51.100.1", "10.9.9.9"];
        assert_eq!(client("10.1.2.3", &forged, &["10.0.0.0/8"]), "198.51.100.1");
        assert_eq!(
            client("10.1.2.3", &["1.2.3.4, nonsense"], &["10.0.0.0/8"]),
            "10.1.2.3"
        );
    }

    #[test]
    fn ports_and_brackets_are_read() {
        assert_eq!(
            client("10.1.2.3", &["198.51.100.1:4711"], &["10.0.0.0/8"]),
            "198.51.100.1"
        );
        assert_eq!(
            client("::1", &["[2001:db8::7]:443"], &["::1"]),
            "2001:db8::7"
        );
    }

    #[test]
    fn stored_address_names_a_network_and_no_host() {
        assert_eq!(
            truncate_address("198.51.100.77".parse().unwrap()),
            "198.51.100.0"
        );
        assert_eq!(
            truncate_address("::ffff:198.51.100.77".parse().unwrap()),
            "198.51.100.0"
        );
        assert_eq!(
            truncate_address("2001:db8:1:2:3:4:5:6".parse().unwrap()),
            "2001:db8:1::"
        );
    }

    #[test]
    fn warning_is_given_once_an_hour() {
        let warning = ForwardingWarning::default();
        let began = Instant::now();
        let due = [0, 1, 3_599, 3_600, 3_601]
            .map(|seconds| warning.is_due(began + Duration::from_secs(seconds)));
        assert_eq!(due, [true, false, false, true, false]);
    }

    #[test]
    fn addresses_of_one_client_share_a_rate_limit() {
        let counted = |text: &str| super::rate_limit_key(text.parse().unwrap());
        assert_eq!(counted("2001:db8:1:2:3:4:5:6"), counted("2001:db8:1:2::9"));
        assert_ne!(counted("2001:db8:1:2::9"), counted("2001:db8:1:3::9"));
        assert_eq!(counted("::ffff:198.51.100.77"), "198.51.100.77");
    }

    proptest! {
        #[test]
        fn forged_header_never_changes_the_client_address(forged in "[ -~]{0,60}") {
            let mut headers = HeaderMap::new();
            headers.append(FORWARDED_FOR, HeaderValue::from_str(&format!("{forged}, 198.51.100.1")).unwrap());
            let (peer, trusted) = ("10.1.2.3".parse().unwrap(), ["10.0.0.0/8".parse().unwrap()]);
            prop_assert_eq!(client_address(peer, &headers, &trusted).to_string(), "198.51.100.1");
            prop_assert_eq!(client_address(peer, &headers, &[]), peer);
        }
    }
}
