//! The specification of the public API, sentence by sentence: a module for each section, a test for each sentence, named
//! after it. `tests/CONTRACT.md` holds the two side by side.

mod agent;
mod agent_chat;
mod agent_configuration;
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
