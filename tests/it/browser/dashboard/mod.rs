//! The dashboard in a real browser, on live data of the real service.

mod agents;
mod analytics;
mod conversation_actions;
mod conversations;
mod drafts;
mod first_start;
mod key_uses;
mod keys;
mod looks;
mod members;
mod person;
mod playground;
mod products;
mod roles;
mod serving;
mod sessions;
mod team_trials;
mod teams;
mod tried_looks;
mod widget_settings;

use person::{PASSWORD, Person, invited};
