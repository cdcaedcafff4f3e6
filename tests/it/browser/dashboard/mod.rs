//! The dashboard in a real browser, on live data of the real service.

mod agents;
mod conversations;
mod first_start;
mod keys;
mod looks;
mod members;
mod person;
mod roles;
mod serving;
mod sessions;
mod teams;
mod widget_settings;

use person::{PASSWORD, Person, invited};
