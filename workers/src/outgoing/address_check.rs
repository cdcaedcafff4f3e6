//! Checks of addresses when they are saved, so that people learn at once which ones the workers
//! would refuse later. The workers check each connection again.

use std::{net::IpAddr, sync::Arc, time::Duration};

use reqwest::Url;
use switchboard_backends::products::config::ProductsConfig;
use switchboard_schemas::network::IpNetwork;

use super::{
    address::{AddressReach, UrlRefusal, check_feed_url, check_host, may_reach},
    resolver::{HostLookup, SystemLookup},
};
use crate::config::WorkersConfig;

/// Longest wait for the addresses of a name; later ones are not checked.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// Checks whether the workers may connect to the address of a provider or a feed.
#[derive(Clone)]
pub struct AddressChecker {
    lookup: Arc<dyn HostLookup>,
    provider_networks: Arc<[IpNetwork]>,
    feed_networks: Arc<[IpNetwork]>,
}

impl AddressChecker {
    /// Creates a checker with the networks that the operator allows.
    pub fn new(workers: &WorkersConfig, products: &ProductsConfig) -> Self {
        Self {
            lookup: Arc::new(SystemLookup),
            provider_networks: workers.provider_private_networks.clone().into(),
            feed_networks: products.feed_private_networks.clone().into(),
        }
    }

    /// Returns the reason for which a member of an organization cannot use this base URL.
    pub async fn refusal_of_provider(&self, base_url: &str) -> Option<String> {
        let networks = &self.provider_networks;
        let literal = check_host(base_url, AddressReach::Public, networks);
        let refused = match literal {
            Ok(()) => {
                !self
                    .is_reachable(base_url, AddressReach::Public, networks)
                    .await
            }
            Err(UrlRefusal::Network) => true,
            // Other rules are those of the form of an address.
            Err(_) => false,
        };
        refused.then(|| private_network("workers.provider_private_networks"))
    }

    /// Returns the reason for which this URL of a feed cannot be fetched.
    pub async fn refusal_of_feed(&self, url: &str) -> Option<String> {
        let setting = "products.feed_private_networks";
        let networks = &self.feed_networks;
        match check_feed_url(url, networks) {
            Ok((url, reach)) => {
                let is_reachable = self.is_reachable(url.as_str(), reach, networks).await;
                (!is_reachable).then(|| private_network(setting))
            }
            Err(UrlRefusal::Scheme) => Some(format!(
                "must begin with https://; other addresses need a network in {setting}, which an operator of the service sets"
            )),
            Err(UrlRefusal::Network) => Some(private_network(setting)),
            Err(UrlRefusal::Malformed | UrlRefusal::Credentials) => None,
        }
    }

    /// Returns false if the name leads to an address that may not be reached. A name that cannot be
    /// resolved in time may be one of tomorrow.
    async fn is_reachable(&self, url: &str, reach: AddressReach, allowed: &[IpNetwork]) -> bool {
        let Some(name) = host_name(url) else {
            return true;
        };
        let found = if is_localhost(&name) {
            vec![IpAddr::from([127, 0, 0, 1])]
        } else {
            match tokio::time::timeout(LOOKUP_TIMEOUT, self.lookup.addresses(&name)).await {
                Ok(Ok(found)) => found,
                Ok(Err(_)) | Err(_) => {
                    tracing::warn!("address saved without a check, its name cannot be resolved");
                    return true;
                }
            }
        };
        found
            .iter()
            .all(|address| may_reach(*address, reach, allowed))
    }
}

fn private_network(setting: &str) -> String {
    format!(
        "leads to a network that is not public; an operator of the service can allow it with {setting}"
    )
}

/// Returns the host of a URL if it is a name.
fn host_name(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.trim_end_matches('.');
    let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
    (!is_address).then(|| host.to_owned())
}

/// Returns true for the names of this machine, also where no resolver knows them (RFC 6761).
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use std::io;

    use async_trait::async_trait;

    use super::*;

    struct ScriptedLookup;

    #[async_trait]
    impl HostLookup for ScriptedLookup {
        async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
            match name {
                "models.example" => Ok(vec!["8.8.8.8".parse().unwrap()]),
                "mixed.example" => Ok(["8.8.8.8", "10.0.0.1"]
                    .map(|address| address.parse().unwrap())
                    .into()),
                "slow.example" => std::future::pending().await,
                _ => Err(io::Error::other("no such name")),
            }
        }
    }

    fn checker(networks: &[&str]) -> AddressChecker {
        let networks: Vec<IpNetwork> = networks.iter().map(|net| net.parse().unwrap()).collect();
        AddressChecker {
            lookup: Arc::new(ScriptedLookup),
            provider_networks: networks.clone().into(),
            feed_networks: networks.into(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn private_provider_is_refused_with_the_setting() {
        for (host, refused) in [
            ("127.0.0.1:11434", true),
            ("2130706433", true),
            ("0x7f.1", true),
            ("[::1]:11434", true),
            ("[::ffff:127.0.0.1]", true),
            ("169.254.169.254", true),
            ("192.168.1.7", true),
            ("localhost:11434", true),
            ("LOCALHOST.", true),
            ("api.localhost", true),
            ("mixed.example", true),
            ("models.example", false),
            ("8.8.8.8", false),
            ("unknown.example", false),
            ("slow.example", false),
        ] {
            let refusal = checker(&[])
                .refusal_of_provider(&format!("http://{host}/v1"))
                .await;
            let names_it = |text: String| text.contains("workers.provider_private_networks");
            assert_eq!(refusal.map(names_it), refused.then_some(true), "{host}");
        }
    }

    #[tokio::test]
    async fn allowed_network_is_accepted() {
        let checker = checker(&["127.0.0.0/8"]);
        for url in ["http://127.0.0.1:11434/v1", "http://localhost/v1"] {
            assert_eq!(checker.refusal_of_provider(url).await, None, "{url}");
        }
        assert_eq!(checker.refusal_of_feed("http://127.0.0.1/feed").await, None);
        let other = checker.refusal_of_provider("http://10.0.0.1/v1").await;
        assert!(other.is_some());
    }

    #[tokio::test]
    async fn private_or_unencrypted_feed_is_refused_with_the_setting() {
        for (url, refused) in [
            ("https://127.0.0.1/feed", true),
            ("https://localhost/feed", true),
            ("https://mixed.example/feed", true),
            ("http://models.example/feed", true),
            ("https://models.example:8443/feed", true),
            ("https://models.example/feed", false),
            ("https://unknown.example/feed", false),
        ] {
            let refusal = checker(&[]).refusal_of_feed(url).await;
            let names_it = |text: String| text.contains("products.feed_private_networks");
            assert_eq!(refusal.map(names_it), refused.then_some(true), "{url}");
        }
    }
}
