//! Carries the trace through the process: from the request's headers into its span, from the span onto the bus.

use http::{HeaderMap, HeaderName};
use opentelemetry::{
    global,
    propagation::{Extractor, Injector},
    trace::TraceContextExt,
};
use switchboard_backends::bus::Headers;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes `span` a child of what the request's headers name, and writes the trace's id into it for the logs.
pub(crate) fn continue_trace(span: &Span, headers: &HeaderMap) {
    let parent =
        global::get_text_map_propagator(|propagator| propagator.extract(&Incoming(headers)));
    // Fails only where nobody collects traces.
    let _ = span.set_parent(parent);
    span.record(
        "trace.id",
        tracing::field::display(span.context().span().span_context().trace_id()),
    );
}

/// Adds the current span to a record's headers; adds nothing where nobody collects traces.
pub(crate) fn inject_trace(headers: &mut Headers) {
    let context = Span::current().context();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut Outgoing(headers))
    });
}

struct Incoming<'a>(&'a HeaderMap);

impl Extractor for Incoming<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct Outgoing<'a>(&'a mut Headers);

impl Injector for Outgoing<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.push((key.to_ascii_lowercase(), value));
    }
}
