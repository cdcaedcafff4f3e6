//! Networks in CIDR notation, used in settings that treat some addresses differently.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

/// An address or a network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IpNetwork(IpNet);

/// The error for a text that is neither an address nor a network, with the text.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not an address or a network such as 10.0.0.0/8")]
pub struct InvalidNetwork(String);

impl IpNetwork {
    /// Returns `true` if the network contains `address`. An IPv4-mapped IPv6 address is not part of
    /// an IPv4 network.
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }
}

impl FromStr for IpNetwork {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let text = text.trim();
        text.parse()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
            .map(Self)
            .map_err(|_| InvalidNetwork(text.to_owned()))
    }
}

impl TryFrom<String> for IpNetwork {
    type Error = InvalidNetwork;

    fn try_from(text: String) -> Result<Self, InvalidNetwork> {
        text.parse()
    }
}

impl From<IpNetwork> for String {
    fn from(network: IpNetwork) -> Self {
        network.to_string()
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Returns `address` with only its leading bits: `bits_v4` of an IPv4 address, `bits_v6` of an IPv6
/// address. More bits than an address has keep all of them.
pub fn mask_address(address: IpAddr, bits_v4: u8, bits_v6: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => Ipv4Net::new(v4, bits_v4).map_or(address, |net| net.network().into()),
        IpAddr::V6(v6) => Ipv6Net::new(v6, bits_v6).map_or(address, |net| net.network().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_networks_are_rejected() {
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "example.org",
            "10.0.0.0/-1",
        ] {
            assert_eq!(
                text.parse::<IpNetwork>(),
                Err(InvalidNetwork(text.to_owned()))
            );
        }
    }

    #[test]
    fn address_is_a_network_of_one_member() {
        let network: IpNetwork = "::1".parse().unwrap();
        assert_eq!(network.to_string(), "::1/128");
        assert!(network.contains("::1".parse().unwrap()));
        assert!(!network.contains("::2".parse().unwrap()));
    }

    #[test]
    fn prefix_zero_contains_every_address_of_its_version() {
        let network: IpNetwork = "0.0.0.0/0".parse().unwrap();
        assert!(network.contains("9.9.9.9".parse().unwrap()));
        assert!(!network.contains("::ffff:9.9.9.9".parse().unwrap()));
    }

    #[test]
    fn masked_address_has_zeros_after_its_leading_bits() {
        for (address, masked) in [
            ("10.1.2.3", "10.1.2.0"),
            ("2001:db8:1:2:3::4", "2001:db8:1::"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(mask_address(address, 24, 48).to_string(), masked);
        }
    }
}
