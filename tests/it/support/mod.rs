//! Shared test tools: processes of the product, a scripted model, and clients of both APIs.

mod background;
mod browser;
mod browser_view;
mod client;
mod endpoints;
mod environment;
mod nginx;
mod organization;
mod ports;
mod process;
mod program;
mod raw;
mod reply;
mod report;
mod service;
mod wait;

pub(crate) use background::background;
pub(crate) use browser::{Browser, Page};
pub(crate) use browser_view::VIEWS;
pub(crate) use client::{Answer, Client, send};
pub(crate) use endpoints::{Endpoint, Endpoints, FOREIGN_ORIGIN};
pub(crate) use environment::{ADMIN_TOKEN, Profile, service_address};
pub(crate) use nginx::start_nginx;
pub(crate) use organization::{
    Organization, OrganizationDocument, front_desk, shop_saying, shop_with, shop_with_settings,
};
pub(crate) use ports::free_port;
pub(crate) use process::{Process, ProcessCommand};
pub(crate) use program::Program;
pub(crate) use raw::RawConnection;
pub(crate) use reply::{Events, Reply};
pub(crate) use report::report;
pub(crate) use service::{SharedService, TestService};
pub(crate) use switchboard_scripted_model::{End, Raw, Script, ScriptedModel};
pub(crate) use wait::{PATIENCE, POLL_INTERVAL, PROMISED, SLACK, eventually};
#[cfg(feature = "real-services")]
pub(crate) use {
    service::{STOP_PATIENCE, wait_until_ready},
    switchboard_scripted_model::RecordedRequest,
};

use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a name that no other test uses, in this run or another.
pub(crate) fn unique(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(
        "{prefix}{:x}{number:x}",
        chrono::Utc::now().timestamp_micros() & 0xff_ffff_ffff
    )
}
