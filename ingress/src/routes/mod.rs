//! Handlers of the public routes, one file each.

pub(crate) mod agent;
pub(crate) mod agent_chat;
pub(crate) mod conversation;
mod conversation_lookup;
mod conversation_page;
mod conversation_patch;
pub(crate) mod dashboard;
pub(crate) mod demo;
pub(crate) mod docs;
pub(crate) mod file_download;
pub(crate) mod file_upload;
pub(crate) mod message;
pub(crate) mod openapi;
mod preview;
pub(crate) mod root;
mod static_files;
pub(crate) mod team_chat;
pub(crate) mod visitor_token;
pub(crate) mod widget;
pub(crate) mod widget_script;

#[cfg(test)]
mod conversation_tests;
#[cfg(test)]
mod message_tests;
