//! Checks of outgoing connections (SSRF protection). Whoever configures an organization chooses
//! addresses of feeds and model providers; they must lead to the public internet and not to
//! networks that only this machine can reach.

mod address;
mod address_check;
mod resolver;

pub use self::address_check::AddressChecker;
pub(crate) use self::{
    address::{AddressReach, UrlRefusal, check_feed_url, check_host, may_reach},
    resolver::{CheckedResolver, HostLookup, SystemLookup},
};
