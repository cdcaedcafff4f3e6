//! Limit of open connections of one client address, so that one client cannot take all of them.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use switchboard_schemas::network::IpNetwork;

use crate::{config::IngressConfig, http::counted_network};

/// Open connections by client address, or by network for IPv6.
pub(super) struct AddressConnections {
    open: Mutex<HashMap<IpAddr, usize>>,
    connections_max: usize,
    /// Proxies, which connect for many clients and are not limited.
    proxies: Vec<IpNetwork>,
}

/// An admitted connection, which counts until it is dropped.
pub(super) struct AdmittedConnection {
    connections: Arc<AddressConnections>,
    /// The counted network; `None` for a proxy.
    network: Option<IpAddr>,
}

impl AddressConnections {
    pub(super) fn new(config: &IngressConfig) -> Self {
        Self {
            open: Mutex::default(),
            connections_max: config.connections_per_address(),
            proxies: config.trusted_proxies.clone(),
        }
    }

    /// Admits a connection, unless its address has too many.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<AdmittedConnection> {
        let peer = peer.to_canonical();
        let is_proxy = self.proxies.iter().any(|network| network.contains(peer));
        let network = (!is_proxy).then(|| counted_network(peer));
        if let Some(network) = network {
            let mut open = self.open.lock();
            let count = open.entry(network).or_default();
            if *count >= self.connections_max {
                return None;
            }
            *count += 1;
        }
        Some(AdmittedConnection {
            connections: Arc::clone(self),
            network,
        })
    }
}

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        let Some(network) = self.network else { return };
        if let Entry::Occupied(mut count) = self.connections.open.lock().entry(network) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_limited_and_a_proxy_is_not() {
        let connections = Arc::new(AddressConnections::new(&IngressConfig {
            connections_max: 4,
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
            ..IngressConfig::default()
        }));
        let admit = |address: &str| connections.admit(address.parse().unwrap());
        let mut first: Vec<_> = (0..3).map(|_| admit("192.0.2.1").unwrap()).collect();
        assert!(admit("192.0.2.1").is_none());
        assert!(admit("::ffff:192.0.2.1").is_none());
        assert!(admit("192.0.2.2").is_some());
        first.pop();
        assert!(admit("192.0.2.1").is_some());
        // One network of a customer counts as one address.
        let network: Vec<_> = (1..=3)
            .map(|host| admit(&format!("2001:db8::{host}")).unwrap())
            .collect();
        assert!(admit("2001:db8::4").is_none());
        let proxied: Vec<_> = (0..9).map(|_| admit("10.1.2.3").unwrap()).collect();
        drop((first, network, proxied));
        assert!(connections.open.lock().is_empty());
    }
}
