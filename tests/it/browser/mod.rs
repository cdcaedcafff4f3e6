//! Tests with real pages in a real browser.

mod counting_proxy;
mod cross_origin;
mod dashboard;
mod settings_table;
mod widget;
