//! Trace contexts of requests (W3C Trace Context), carried by the headers of bus records.
//!
//! With an exporter, the context is that of the span that began the work. Without one nothing is
//! recorded, and the work keeps the context it came with, or a random one, so that logs alone show
//! the way of a request.

use std::sync::LazyLock;

use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId,
    propagation::{Extractor, Injector, TextMapPropagator},
    trace::{SpanContext, TraceContextExt},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::RecordHeaders;

static PROPAGATOR: LazyLock<TraceContextPropagator> = LazyLock::new(TraceContextPropagator::new);

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// The trace to which some work belongs.
#[derive(Clone)]
pub struct TraceContext(SpanContext);

impl TraceContext {
    /// Continues the trace that the headers behind `get` name, or else begins one, and makes `span`
    /// a part of it.
    pub fn enter<'a>(span: &Span, get: impl Fn(&str) -> Option<&'a str>) -> Self {
        let headers = ["traceparent", "tracestate"].map(|name| (name, get(name)));
        let parent = PROPAGATOR.extract_with_context(&Context::new(), &HeaderExtractor(headers));
        let named = parent.span().span_context().clone();
        // Fails without an exporter.
        if named.is_valid() && span.set_parent(parent).is_err() {
            return Self(named);
        }
        let exported = span.context().span().span_context().clone();
        if exported.is_valid() {
            Self(exported)
        } else {
            Self::random()
        }
    }

    /// Returns the context of the running work; an invalid one outside of any.
    pub fn current() -> Self {
        CURRENT
            .try_with(Clone::clone)
            .unwrap_or_else(|_| Self(SpanContext::empty_context()))
    }

    /// Returns the trace id, which is the same in the ingress and in every worker.
    pub fn trace_id(&self) -> TraceId {
        self.0.trace_id()
    }

    /// Returns headers with which a consumer continues the trace.
    pub fn to_headers(&self) -> RecordHeaders {
        let mut headers = Vec::new();
        let context = Context::new().with_remote_span_context(self.0.clone());
        PROPAGATOR.inject_context(&context, &mut HeaderInjector(&mut headers));
        headers
    }

    /// Runs `work` within the trace and the span.
    pub async fn run<F: Future>(self, span: Span, work: F) -> F::Output {
        CURRENT.scope(self, work).instrument(span).await
    }

    fn random() -> Self {
        let (trace, span) = (rand::random::<u128>(), rand::random::<u64>());
        Self(SpanContext::new(
            TraceId::from_bytes(trace.to_ne_bytes()),
            SpanId::from_bytes(span.to_ne_bytes()),
            TraceFlags::SAMPLED,
            false,
            opentelemetry::trace::TraceState::default(),
        ))
    }
}

/// Values of the headers with these names.
struct HeaderExtractor<'a>([(&'static str, Option<&'a str>); 2]);

impl Extractor for HeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == key)?.1
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }
}

struct HeaderInjector<'a>(&'a mut RecordHeaders);

impl Injector for HeaderInjector<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.push((key.to_ascii_lowercase(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(header: Option<&str>) -> TraceContext {
        let named = |name: &str| header.filter(|_| name == "traceparent");
        TraceContext::enter(&Span::none(), named)
    }

    #[tokio::test]
    async fn named_trace_is_continued_through_headers() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let current = async { TraceContext::current().to_headers() };
        let headers = enter(Some(header)).run(Span::none(), current).await;
        assert!(
            headers.contains(&("traceparent".into(), header.into())),
            "{headers:?}"
        );
    }

    #[test]
    fn missing_or_broken_header_begins_a_trace_of_its_own() {
        for header in [None, Some("00-00-00-00"), Some("é")] {
            let (one, two) = (enter(header).trace_id(), enter(header).trace_id());
            assert!(one != TraceId::INVALID && one != two, "{header:?}");
        }
        assert_eq!(TraceContext::current().to_headers(), []);
    }
}
