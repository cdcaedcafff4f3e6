//! The admin API, on the public port and on its own port.

mod admin_port;
mod api_keys;
mod bounds;
mod conversations;
mod deletion;
mod erasures;
mod export;
mod live_conversations;
mod playground;
mod provider_test;
mod removals;
mod resources;
