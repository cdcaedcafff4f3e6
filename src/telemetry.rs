//! Logs on the standard error stream, and traces for a collector if one is configured.
//!
//! Spans are recorded only for a collector; the trace id of the logs does not need them.

use std::io::IsTerminal;

use anyhow::Context;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing_appender::non_blocking::NonBlocking;
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    config::{LogFormat, TelemetryConfig},
    log_writer::{DroppedLinesCollector, LogWriter},
};

/// Filter directives for libraries whose log lines can contain message text.
const SILENCED_TARGETS: [&str; 3] = ["async_openai=off", "h2=info", "hyper_util=info"];

/// Writer of logs and exporter of traces, flushed when the process ends.
pub(crate) struct TelemetryGuard {
    provider: Option<SdkTracerProvider>,
    log_writer: LogWriter,
}

impl TelemetryGuard {
    /// Installs the log subscriber and the trace exporter of this process.
    pub(crate) fn install(config: &TelemetryConfig) -> anyhow::Result<Self> {
        let provider = tracer_provider(config)?;
        let traces = provider.as_ref().map(|provider| {
            tracing_opentelemetry::layer().with_tracer(provider.tracer("switchboard"))
        });
        let (log_writer, writer) = LogWriter::start().context("cannot write logs")?;
        tracing_subscriber::registry()
            .with(build_filter(&config.log)?)
            .with(log_layer(config.log_format, writer))
            .with(traces)
            .try_init()
            .context("cannot install the log subscriber")?;
        Ok(Self {
            provider,
            log_writer,
        })
    }

    /// Returns the collector of the metric of dropped log lines.
    pub(crate) fn dropped_lines_collector(&self) -> prometheus::Result<DroppedLinesCollector> {
        self.log_writer.dropped_lines_collector()
    }

    /// Exports the remaining spans and writes the remaining log lines. Blocks the thread for at
    /// most the timeouts of both.
    pub(crate) fn flush(self) {
        if let Some(Err(error)) = self.provider.map(|provider| provider.shutdown()) {
            tracing::warn!(%error, "cannot flush traces");
        }
        self.log_writer.flush();
    }
}

/// Builds the log filter. `RUST_LOG` overrides the configuration; silenced targets stay silent
/// under both.
fn build_filter(configured: &str) -> anyhow::Result<EnvFilter> {
    let text = std::env::var("RUST_LOG").unwrap_or_else(|_| configured.to_owned());
    SILENCED_TARGETS.into_iter().try_fold(
        EnvFilter::try_new(&text)
            .with_context(|| format!("telemetry.log: {text:?} is not a log filter"))?,
        |filter, directive| {
            Ok(filter.add_directive(
                directive
                    .parse()
                    .context("invalid directive of a silenced target")?,
            ))
        },
    )
}

fn log_layer<S>(format: LogFormat, writer: NonBlocking) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'span> tracing_subscriber::registry::LookupSpan<'span>,
{
    let text = match format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    if text {
        layer
            .with_ansi(std::io::stderr().is_terminal())
            .compact()
            .boxed()
    } else {
        layer
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed()
    }
}

fn tracer_provider(config: &TelemetryConfig) -> anyhow::Result<Option<SdkTracerProvider>> {
    let resource = Resource::builder().with_service_name("switchboard").build();
    let builder = SdkTracerProvider::builder().with_resource(resource);
    let from_environment = std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_some();
    if config.otlp_endpoint.is_empty() && !from_environment {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_http();
    let exporter = if config.otlp_endpoint.is_empty() {
        exporter
    } else {
        exporter.with_endpoint(format!(
            "{}/v1/traces",
            config.otlp_endpoint.trim_end_matches('/')
        ))
    };
    let exporter = exporter
        .build()
        .context("telemetry.otlp_endpoint: cannot create the exporter")?;
    Ok(Some(builder.with_batch_exporter(exporter).build()))
}
