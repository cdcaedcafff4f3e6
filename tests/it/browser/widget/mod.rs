//! The chat widget on pages of other origins, in a real browser with the real service.

mod accessibility;
mod canary;
mod changing_pages;
mod conversation;
mod demo_page;
mod disclosure;
mod file_failures;
mod files;
mod hostile_text;
mod leads;
mod long_replies;
pub(super) mod page;
mod products;
mod settings;
mod strict_pages;
mod stub_service;
mod tabs;
