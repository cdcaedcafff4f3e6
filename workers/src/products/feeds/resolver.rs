//! Resolves a feed's host once and gives only addresses that were judged, so that the connection goes to what was looked
//! at. A name that answers differently the next time (DNS rebinding) gains nothing.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use switchboard_schemas::network::Network;

use super::address::{Reach, Refused, may_reach};

/// Asks for the addresses of a name.
#[async_trait]
pub(super) trait Lookup: Send + Sync {
    /// All of them.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of this machine.
pub(super) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// Gives what may be connected to.
pub(super) struct CheckedResolver {
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) reach: Reach,
    pub(super) allowed: Arc<[Network]>,
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
            // One inner address among public ones is an attack too: which is tried first is chance.
            if found.is_empty()
                || !found
                    .iter()
                    .all(|address| may_reach(*address, reach, &allowed))
            {
                return Err(Refused::Network.into());
            }
            let addresses: Addrs =
                Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
