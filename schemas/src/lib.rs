//! The contract between Switchboard's processes, and with the readers of its topics: plain data, no I/O.
//!
//! Reading order: [`ids`], [`time`] and [`day`] name things; [`agent`], [`team`], [`provider`], [`organization`] and
//! [`api_key`] are what an organization configures, [`catalog_product`] is what a shop sells, [`price`] reads what it asks, and
//! [`visitor_token`] is what a page holds instead of a key; [`user`] is who configures, [`random_token`] what they hold,
//! and [`audit`] what they changed; [`turn`] is an accepted message on its way; [`chat_job`] and
//! [`inference_job`] carry it; [`reply_event`] is the reply on its way back; [`conversation`] is what is kept; and
//! [`message_event`] is what analytics reads; [`control_event`] says what was configured anew, and [`trial`] is what is
//! tried before. [`topics`] is the one
//! table of where each of them travels.

pub mod agent;
pub mod api_key;
pub mod audit;
pub mod base32;
pub mod catalog_product;
pub mod chat_job;
pub mod client_text;
pub mod control_event;
pub mod conversation;
pub mod day;
pub mod email;
pub mod erasure;
pub mod ids;
pub mod inference_job;
pub mod message_event;
pub mod network;
pub mod organization;
pub mod price;
pub mod provider;
pub mod random_token;
#[cfg(test)]
mod record_properties;
pub mod reply_event;
pub mod routing;
pub mod secret;
pub mod team;
pub mod time;
pub mod topics;
pub mod trial;
pub mod turn;
pub mod user;
pub mod versioned;
pub mod visitor_token;
