//! Resolves a host once and returns only addresses that passed the check, so that the connection
//! goes to a checked address. A name with another answer the next time (DNS rebinding)
//! gains nothing.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use switchboard_schemas::network::IpNetwork;

use super::address::{AddressReach, UrlRefusal, may_reach};

#[async_trait]
pub(crate) trait HostLookup: Send + Sync {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
pub(crate) struct SystemLookup;

#[async_trait]
impl HostLookup for SystemLookup {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// A resolver for the HTTP client that fails unless every address may be connected to.
pub(crate) struct CheckedResolver {
    pub(crate) lookup: Arc<dyn HostLookup>,
    pub(crate) reach: AddressReach,
    pub(crate) allowed: Arc<[IpNetwork]>,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, reach, allowed) = (
            Arc::clone(&self.lookup),
            self.reach,
            Arc::clone(&self.allowed),
        );
        Box::pin(async move {
            let found = lookup.addresses(name.as_str()).await?;
            // One internal address among public ones is an attack too, because the client may try
            // it first.
            if found.is_empty()
                || !found
                    .iter()
                    .all(|address| may_reach(*address, reach, &allowed))
            {
                return Err(UrlRefusal::Network.into());
            }
            let addresses: Addrs =
                Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
