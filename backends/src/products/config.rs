//! Settings of product uploads, feeds and searches.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchboard_schemas::network::IpNetwork;

/// The `[products]` section of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProductsConfig {
    /// Maximum number of products per agent.
    pub products_max: u64,
    /// Maximum size of an upload or a feed, in bytes.
    pub bytes_max: u64,
    /// Timeout of an upload, in milliseconds.
    pub upload_timeout_ms: u64,
    /// Timeout of fetching and storing a feed, in milliseconds.
    pub feed_timeout_ms: u64,
    /// Timeout of connecting to a feed's server, in milliseconds.
    pub feed_connect_timeout_ms: u64,
    /// Interval at which due feeds are searched, in milliseconds.
    pub feed_scan_ms: u64,
    /// Maximum number of feeds that one process fetches at once.
    pub feeds_at_once_max: usize,
    /// Networks from which feeds may be fetched although they are not public, also over http and on
    /// any port.
    pub feed_private_networks: Vec<IpNetwork>,
    /// Memory for the search indexes of one process, in bytes.
    pub index_bytes_max: u64,
}

impl Default for ProductsConfig {
    fn default() -> Self {
        Self {
            products_max: 50_000,
            bytes_max: 64 << 20,
            upload_timeout_ms: 120_000,
            feed_timeout_ms: 60_000,
            feed_connect_timeout_ms: 5_000,
            feed_scan_ms: 15_000,
            feeds_at_once_max: 4,
            feed_private_networks: Vec::new(),
            index_bytes_max: 512 << 20,
        }
    }
}

impl ProductsConfig {
    /// Returns the invalid keys with the reason of each.
    pub fn validation_errors(&self) -> Vec<String> {
        let must_not_be_zero = [
            ("products_max", self.products_max),
            ("bytes_max", self.bytes_max),
            ("upload_timeout_ms", self.upload_timeout_ms),
            ("feed_timeout_ms", self.feed_timeout_ms),
            ("feed_connect_timeout_ms", self.feed_connect_timeout_ms),
            ("feed_scan_ms", self.feed_scan_ms),
            ("feeds_at_once_max", self.feeds_at_once_max as u64),
            ("index_bytes_max", self.index_bytes_max),
        ];
        let mut validation_errors: Vec<String> = must_not_be_zero
            .iter()
            .filter(|(_, value)| *value == 0)
            .map(|(key, _)| format!("products.{key} must not be 0"))
            .collect();
        // Longer uploads would be taken for abandoned by other processes.
        let longest = super::UPLOAD_TIME_MAX / 2;
        for (key, value) in [
            ("upload_timeout_ms", self.upload_timeout_ms),
            ("feed_timeout_ms", self.feed_timeout_ms),
        ] {
            if Duration::from_millis(value) > longest {
                validation_errors.push(format!(
                    "products.{key} must be at most {}",
                    longest.as_millis()
                ));
            }
        }
        validation_errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_impossible_values_are_reported() {
        assert!(ProductsConfig::default().validation_errors().is_empty());
        let config = ProductsConfig {
            feed_scan_ms: 0,
            feed_timeout_ms: 3_600_000,
            ..ProductsConfig::default()
        };
        assert_eq!(
            config.validation_errors(),
            [
                "products.feed_scan_ms must not be 0",
                "products.feed_timeout_ms must be at most 450000"
            ]
        );
    }
}
