//! Carries the trace of a request through the headers of bus records.

use opentelemetry::{
    Context, global,
    propagation::{Extractor, Injector},
    trace::TraceContextExt,
};
use switchboard_backends::bus::RecordHeaders;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes `span` a child of the span whose context the headers hold, if they hold one.
pub(crate) fn continue_trace(span: &Span, headers: &RecordHeaders) {
    let parent: Context = global::get_text_map_propagator(|propagator| {
        propagator.extract(&RecordHeaderExtractor(headers))
    });
    // Without a telemetry layer there is no trace to continue.
    let _ = span.set_parent(parent);
}

/// Returns the trace id of the current span for logs. It is the same in the ingress and in every
/// worker.
pub(crate) fn current_trace_id() -> String {
    Span::current()
        .context()
        .span()
        .span_context()
        .trace_id()
        .to_string()
}

/// Returns headers with which a consumer continues the trace of the current span.
pub(crate) fn trace_headers() -> RecordHeaders {
    let mut headers = Vec::new();
    let context = Span::current().context();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut HeaderInjector(&mut headers))
    });
    headers
}

struct RecordHeaderExtractor<'a>(&'a RecordHeaders);

impl Extractor for RecordHeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }
}

struct HeaderInjector<'a>(&'a mut RecordHeaders);

impl Injector for HeaderInjector<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.push((key.to_owned(), value));
    }
}
