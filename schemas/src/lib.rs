//! Types shared by Switchboard's processes and by the readers of its topics: plain data without
//! I/O.
//!
//! Reading order:
//! - [`ids`], [`time`] and [`day`] define identifiers and points in time.
//! - [`organization`], [`agent`], [`team`], [`provider`] and [`api_key`] are the configuration of
//!   an organization; [`catalog_product`] and [`price`] describe its products.
//! - [`user`], [`random_token`] and [`audit`] belong to the dashboard, [`visitor_token`] to web
//!   pages without an API key.
//! - [`turn`] is an accepted message. [`routing_job`] and [`conversation_job`] carry it to workers,
//!   and [`reply_event`] carries the reply back.
//! - [`conversation`] is the stored history, [`message_event`] the record for analytics,
//!   [`control_event`] the notification of configuration changes, and [`playground`] the test runs
//!   of drafts.
//! - [`topics`] lists all topics with their keys and retention.

pub mod agent;
pub mod api_key;
pub mod audit;
pub mod base32;
pub mod catalog_product;
pub mod client_text;
pub mod control_event;
pub mod conversation;
pub mod conversation_job;
pub mod day;
pub mod email;
pub mod erasure;
pub mod file;
pub mod ids;
pub mod lead;
pub mod message_event;
pub mod network;
pub mod organization;
pub mod playground;
pub mod price;
pub mod provider;
pub mod random_token;
#[cfg(test)]
mod record_properties;
pub mod removal;
pub mod reply_event;
pub mod routing;
pub mod routing_job;
pub mod secret;
pub mod team;
pub mod text_schemas;
pub mod time;
pub mod topics;
pub mod turn;
pub mod user;
pub mod versioned;
pub mod visitor_token;
