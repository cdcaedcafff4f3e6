//! Tests that need a quiet machine: they use all of it, or compare times. `make test` runs them
//! alone, after the others. There are at most five.

mod crowd;
mod limiter_outage;
mod real_model;
