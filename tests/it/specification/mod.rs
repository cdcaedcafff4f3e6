//! The specification of the public API: a module for each section and a test for each sentence.
//! `tests/CONTRACT.md` maps one to the other.

mod agent;
mod agent_chat;
mod api_key;
mod authentication;
mod conversation;
mod conversation_metadata;
mod conversation_read;
mod conversation_update;
mod errors;
mod limits;
mod message;
mod overview;
mod states;
mod team;
mod team_chat;
mod theme;
mod versioning;
mod widget_configuration;
mod widget_settings;
