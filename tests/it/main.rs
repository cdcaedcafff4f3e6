//! Integration tests: the real program as processes, over HTTP only, with the same tests on
//! embedded and on real services.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod admin;
#[cfg(test)]
mod agent_chat;
#[cfg(test)]
mod analytics;
#[cfg(test)]
mod apply;
#[cfg(test)]
mod bad_requests;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod check_order;
#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod edge;
#[cfg(test)]
mod files;
#[cfg(test)]
mod files_reading;
#[cfg(test)]
mod first_start;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod history;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod leads;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod long_conversations;
#[cfg(test)]
mod model_failures;
#[cfg(test)]
mod openapi_document;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod origins;
#[cfg(test)]
mod patch;
#[cfg(test)]
mod products;
#[cfg(test)]
mod provider_faults;
#[cfg(test)]
mod providers;
#[cfg(test)]
#[cfg(feature = "real-services")]
mod real;
#[cfg(test)]
mod reply_formats;
#[cfg(test)]
mod request_bodies;
#[cfg(test)]
mod request_headers;
#[cfg(test)]
mod responses;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod route_replay;
#[cfg(test)]
mod shopping;
#[cfg(test)]
mod specification;
#[cfg(test)]
mod support;
#[cfg(test)]
mod teams;
#[cfg(test)]
mod visitor_tokens;
