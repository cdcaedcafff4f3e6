//! The chat widget as visitors meet it: on pages of other origins, in a real browser, with the real service behind it.

mod accessibility;
mod canary;
mod conversation;
mod demo_page;
mod hostile_text;
pub(super) mod page;
mod products;
mod settings;
mod strict_pages;
mod stub_service;
mod tabs;
