//! Propagates trace context from request headers into spans, and from spans onto the bus.

use http::{HeaderMap, HeaderName};
use opentelemetry::{
    global,
    propagation::{Extractor, Injector},
    trace::TraceContextExt,
};
use switchboard_backends::bus::RecordHeaders;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes `span` a child of the trace in the request headers, and records the trace id in it.
pub(crate) fn continue_trace(span: &Span, headers: &HeaderMap) {
    let parent = global::get_text_map_propagator(|propagator| {
        propagator.extract(&HttpHeaderExtractor(headers))
    });
    // Fails only without a trace exporter.
    let _ = span.set_parent(parent);
    span.record(
        "trace.id",
        tracing::field::display(span.context().span().span_context().trace_id()),
    );
}

/// Adds the current span to the headers of a bus record. Without a trace exporter nothing is added.
pub(crate) fn inject_trace(headers: &mut RecordHeaders) {
    let context = Span::current().context();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut HeaderInjector(headers))
    });
}

struct HttpHeaderExtractor<'a>(&'a HeaderMap);

impl Extractor for HttpHeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct HeaderInjector<'a>(&'a mut RecordHeaders);

impl Injector for HeaderInjector<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.push((key.to_ascii_lowercase(), value));
    }
}
