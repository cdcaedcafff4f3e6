//! Jobs in, replies out: routing and inference workers.

pub mod demo_model;
