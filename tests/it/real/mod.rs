//! Tests that need real services and separate processes.

mod broker_outage;
mod compose_file;
mod crowd;
mod kafka;
mod limiter_outage;
mod malformed_records;
mod message_events;
mod own_services;
mod real_model;
mod redis_outage;
mod rolling_stop;
mod rotation;
mod worker_kill;
