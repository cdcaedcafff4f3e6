//! Checks of URLs and addresses.

use std::{
    error::Error,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use ipnet::{Ipv4Net, Ipv6Net};
use reqwest::Url;
use switchboard_schemas::network::IpNetwork;

const HTTPS_PORT: u16 = 443;

/// IPv4 networks that are not on the public internet.
const SPECIAL_V4: [Ipv4Net; 15] = [
    Ipv4Net::new_assert(Ipv4Addr::new(0, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10),
    Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16),
    Ipv4Net::new_assert(Ipv4Addr::new(172, 16, 0, 0), 12),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 0, 0, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 0, 2, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 88, 99, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 0, 0), 16),
    Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15),
    Ipv4Net::new_assert(Ipv4Addr::new(198, 51, 100, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(203, 0, 113, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(224, 0, 0, 0), 4),
    Ipv4Net::new_assert(Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// The IPv6 network of public unicast addresses; all others are special, including embedded IPv4
/// addresses.
const GLOBAL_V6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Special networks inside it: tunnels to IPv4 addresses, protocol assignments and documentation.
const SPECIAL_V6: [Ipv6Net; 4] = [
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    Ipv6Net::new_assert(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    Ipv6Net::new_assert(Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The addresses that a URL may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AddressReach {
    /// Every address: the operator chose the URL.
    Any,
    /// Public addresses and networks that the operator allows.
    Public,
    /// Only networks that the operator allows, because the URL of a feed is not https on port 443.
    Allowed,
}

/// The reason for which a URL is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlRefusal {
    #[error("the address is not a URL")]
    Malformed,
    #[error("only https is fetched")]
    Scheme,
    #[error("the address holds a user or a password")]
    Credentials,
    #[error("the address leads to a network that is not public")]
    Network,
}

impl UrlRefusal {
    /// Returns the refusal by [`super::CheckedResolver`] that caused an error of the HTTP client.
    pub(crate) fn find_in(error: &reqwest::Error) -> Option<Self> {
        let mut cause: Option<&(dyn Error + 'static)> = error.source();
        while let Some(inner) = cause {
            if let Some(refused) = inner.downcast_ref() {
                return Some(*refused);
            }
            cause = inner.source();
        }
        None
    }
}

/// Checks the host of a URL if it is an IP address, which no resolver sees.
pub(crate) fn check_host(
    text: &str,
    reach: AddressReach,
    allowed: &[IpNetwork],
) -> Result<(), UrlRefusal> {
    let url = Url::parse(text).map_err(|_| UrlRefusal::Malformed)?;
    match host_address(&url)? {
        Some(address) if !may_reach(address, reach, allowed) => Err(UrlRefusal::Network),
        _ => Ok(()),
    }
}

/// Parses the URL of a feed and returns the addresses that it may lead to. A host that is an IP
/// address is checked here, because no resolver sees it. Fails if the URL is refused.
pub(crate) fn check_feed_url(
    text: &str,
    allowed: &[IpNetwork],
) -> Result<(Url, AddressReach), UrlRefusal> {
    let url = Url::parse(text).map_err(|_| UrlRefusal::Malformed)?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err(UrlRefusal::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlRefusal::Credentials);
    }
    let usual = url.scheme() == "https" && url.port_or_known_default() == Some(HTTPS_PORT);
    let reach = if usual {
        AddressReach::Public
    } else {
        AddressReach::Allowed
    };
    let literal = host_address(&url)?;
    match literal {
        Some(address) if !may_reach(address, reach, allowed) => Err(UrlRefusal::Network),
        None if reach == AddressReach::Allowed && allowed.is_empty() => {
            Err(if url.scheme() == "http" {
                UrlRefusal::Scheme
            } else {
                UrlRefusal::Network
            })
        }
        _ => Ok((url, reach)),
    }
}

/// Returns true if a connection to `address` is permitted.
pub(crate) fn may_reach(address: IpAddr, reach: AddressReach, allowed: &[IpNetwork]) -> bool {
    match reach {
        AddressReach::Any => true,
        AddressReach::Public => is_public(address) || is_allowed(address, allowed),
        AddressReach::Allowed => is_allowed(address, allowed),
    }
}

fn is_allowed(address: IpAddr, allowed: &[IpNetwork]) -> bool {
    allowed.iter().any(|network| network.contains(address))
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address)
                && !SPECIAL_V6.iter().any(|network| network.contains(&address))
        }
    }
}

/// Returns the host as an IP address, if it is one. The URL parser has normalized all spellings
/// (octal, hexadecimal, a single number).
fn host_address(url: &Url) -> Result<Option<IpAddr>, UrlRefusal> {
    let host = url
        .host_str()
        .filter(|host| !host.is_empty())
        .ok_or(UrlRefusal::Malformed)?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    // A resolver would accept `127.0.0.1.` as the address too.
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    Ok(bare.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(url: &str) -> Result<AddressReach, UrlRefusal> {
        check_feed_url(url, &[]).map(|(_, reach)| reach)
    }

    const INTERNAL_HOSTS: [&str; 61] = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "１２７.０.０.１",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "0",
        "0.0.0.0",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:8.8.8.8]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::1]",
        "[100::1]",
        "[2001::1]",
        "[2001:2::1]",
        "[2001:10::1]",
        "[2001:20::1]",
        "[2001:db8::1]",
        "[2002:7f00:1::]",
        "[3fff::1]",
        "[5f00::1]",
        "[fc00::1]",
        "[fd12:3456::1]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
    ];

    #[test]
    fn internal_address_is_refused_in_every_spelling() {
        for host in INTERNAL_HOSTS {
            for url in [
                format!("https://{host}/feed"),
                format!("https://{host}:443/feed"),
            ] {
                assert_eq!(outcome(&url), Err(UrlRefusal::Network), "{url}");
            }
            assert!(outcome(&format!("http://{host}/feed")).is_err(), "{host}");
            for url in [
                format!("http://{host}/v1"),
                format!("https://{host}:8443/v1"),
            ] {
                let checked = check_host(&url, AddressReach::Public, &[]);
                assert_eq!(checked, Err(UrlRefusal::Network), "{url}");
            }
        }
    }

    #[test]
    fn public_hosts_are_fetched_over_https_on_port_443() {
        for host in [
            "8.8.8.8",
            "134744072",
            "172.32.0.1",
            "100.128.0.1",
            "[2606:4700::1111]",
            "[2a00:1450::1]",
            "shop.example",
        ] {
            assert_eq!(
                outcome(&format!("https://{host}/feed.csv")),
                Ok(AddressReach::Public),
                "{host}"
            );
        }
    }

    #[test]
    fn other_schemes_ports_and_credentials_are_refused() {
        for url in [
            "http://shop.example/feed",
            "http://8.8.8.8/feed",
            "https://shop.example:8443/",
            "https://shop.example:22/",
            "https://8.8.8.8:6379/",
            "ftp://shop.example/feed",
            "file:///etc/passwd",
            "gopher://shop.example/",
            "data:text/csv,title",
            "javascript:alert(1)",
            "dict://shop.example:11211/",
            "https://user@shop.example/",
            "https://user:pass@shop.example/",
            "https://127.0.0.1@shop.example/",
            "https://shop.example@127.0.0.1/",
            "https://",
            "//shop.example/feed",
            "shop.example/feed",
            "",
            "https://[::1",
            "https://exa mple/",
            "https://[fe80::1%25eth0]/",
            "https://shop.example:99999/",
            "https://127.0.0.1\\@shop.example/",
        ] {
            assert!(outcome(url).is_err(), "{url}: {:?}", outcome(url));
        }
    }

    #[test]
    fn allowed_networks_extend_reach_by_nothing_else() {
        let allowed: [IpNetwork; 2] = ["10.1.0.0/16".parse().unwrap(), "::1".parse().unwrap()];
        let outcome = |url: &str| check_feed_url(url, &allowed).map(|(_, reach)| reach);
        assert_eq!(
            outcome("http://10.1.2.3:8080/feed"),
            Ok(AddressReach::Allowed)
        );
        assert_eq!(outcome("https://10.1.2.3/feed"), Ok(AddressReach::Public));
        assert_eq!(outcome("http://[::1]:8080/feed"), Ok(AddressReach::Allowed));
        // Names are checked after their resolution.
        assert_eq!(
            outcome("http://feeds.internal/feed"),
            Ok(AddressReach::Allowed)
        );
        for url in [
            "http://10.2.0.1/feed",
            "https://127.0.0.1/feed",
            "http://8.8.8.8/",
            "http://[::ffff:10.1.2.3]/",
        ] {
            assert_eq!(outcome(url), Err(UrlRefusal::Network), "{url}");
        }
        assert!(may_reach(
            "10.1.0.1".parse().unwrap(),
            AddressReach::Allowed,
            &allowed
        ));
        assert!(!may_reach(
            "8.8.8.8".parse().unwrap(),
            AddressReach::Allowed,
            &allowed
        ));
        assert!(may_reach(
            "8.8.8.8".parse().unwrap(),
            AddressReach::Public,
            &allowed
        ));
    }
}
