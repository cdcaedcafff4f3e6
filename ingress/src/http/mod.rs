//! HTTP building blocks that every route shares: errors, request bodies and fields, client
//! addresses and layers.

pub(crate) use self::{
    client_address::{ForwardingWarning, PeerAddress, RateLimitAddress, counted_network},
    error::{ApiError, ApiResult, ErrorCode, RETRY_AFTER_OUTAGE},
    observe::ArrivedAt,
};

pub(crate) mod body;
pub(crate) mod client_address;
pub(crate) mod compression;
pub(crate) mod cors;
pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod observe;
pub(crate) mod origin;
pub(crate) mod problem;
pub(crate) mod query;
pub(crate) mod security_headers;
pub(crate) mod strict_value;
pub(crate) mod unknown_routes;
