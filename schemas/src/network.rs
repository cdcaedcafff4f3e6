//! Networks in CIDR notation, used in settings that treat some addresses differently.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// An address or a network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    prefix_bits: u32,
}

/// The error for a text that is neither an address nor a network.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an address or a network such as 10.0.0.0/8")]
pub struct InvalidNetwork;

impl Network {
    /// Returns `true` if the network contains `address`. An IPv4-mapped IPv6 address is not part of
    /// an IPv4 network.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                mask_v4(network, self.prefix_bits) == mask_v4(address, self.prefix_bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                mask_v6(network, self.prefix_bits) == mask_v6(address, self.prefix_bits)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| InvalidNetwork)?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = prefix.map_or(Ok(bits_max), |bits| {
            bits.trim().parse().map_err(|_| InvalidNetwork)
        })?;
        if prefix_bits > bits_max {
            Err(InvalidNetwork)
        } else {
            Ok(Self {
                address,
                prefix_bits,
            })
        }
    }
}

impl TryFrom<String> for Network {
    type Error = InvalidNetwork;

    fn try_from(text: String) -> Result<Self, InvalidNetwork> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix_bits)
    }
}

/// Returns the address with only its leading bits.
pub fn mask_v4(address: Ipv4Addr, bits: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(address.to_bits() & u32::MAX.checked_shl(32 - bits).unwrap_or(0))
}

/// Returns the address with only its leading bits.
pub fn mask_v6(address: Ipv6Addr, bits: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() & u128::MAX.checked_shl(128 - bits).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_networks_are_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "example.org",
            "10.0.0.0/-1",
        ] {
            assert_eq!(text.parse::<Network>(), Err(InvalidNetwork), "{text}");
        }
        assert!(
            "0.0.0.0/0"
                .parse::<Network>()
                .unwrap()
                .contains("9.9.9.9".parse().unwrap())
        );
    }
}
