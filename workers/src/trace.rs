//! Carries the trace of a request through the headers of bus records.

use opentelemetry::{
    Context, global,
    propagation::{Extractor, Injector},
    trace::TraceContextExt,
};
use switchboard_backends::bus::Headers;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes `span` a child of the span whose context the headers hold, if they hold one.
pub(crate) fn continue_trace(span: &Span, headers: &Headers) {
    let parent: Context =
        global::get_text_map_propagator(|propagator| propagator.extract(&Incoming(headers)));
    // Without a telemetry layer there is no trace to continue.
    let _ = span.set_parent(parent);
}

/// Id of the trace that the current span belongs to, for the logs: the same in the ingress and in every worker.
pub(crate) fn current_id() -> String {
    Span::current()
        .context()
        .span()
        .span_context()
        .trace_id()
        .to_string()
}

/// The headers that let a consumer continue the current span.
pub(crate) fn headers() -> Headers {
    let mut headers = Vec::new();
    let context = Span::current().context();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut Outgoing(&mut headers))
    });
    headers
}

struct Incoming<'a>(&'a Headers);

impl Extractor for Incoming<'_> {
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

struct Outgoing<'a>(&'a mut Headers);

impl Injector for Outgoing<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.push((key.to_owned(), value));
    }
}
