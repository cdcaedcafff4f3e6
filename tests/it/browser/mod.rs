//! What a visitor's browser makes of the product: real pages in a real browser, because no imitation of its rules is
//! believed.

mod counting_proxy;
mod cross_origin;
mod dashboard;
mod settings_table;
mod widget;
