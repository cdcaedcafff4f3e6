//! The dashboard in a real browser with the real service.

mod agents;
mod analytics;
mod appearance;
mod conversation_actions;
mod conversations;
mod files;
mod first_start;
mod key_usage;
mod keys;
mod leads;
mod members;
mod person;
mod playground;
mod playground_appearance;
mod products;
mod providers;
mod publishing;
mod roles;
mod saving;
mod serving;
mod sessions;
mod team_playground;
mod teams;
mod unsaved_changes;
mod widget_settings;

use person::{PASSWORD, Person, invited};
