//! The report of the benchmark.

use hdrhistogram::Histogram;

/// Lines of the report.
pub(crate) struct Report(Vec<String>);

impl Report {
    /// Creates a report with its heading.
    pub(crate) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        Self(vec![format!(
            "measured on {cores} cores, model and load in one further process on the same machine"
        )])
    }

    /// Adds a remark.
    pub(crate) fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }

    /// Adds the times to the first byte.
    pub(crate) fn first_bytes(
        &mut self,
        name: &str,
        chats: usize,
        base: &Histogram<u64>,
        measured: &Histogram<u64>,
    ) {
        let milliseconds = |histogram: &Histogram<u64>, quantile: f64| {
            as_f64(histogram.value_at_quantile(quantile)) / 1e3
        };
        let added = |quantile: f64| milliseconds(measured, quantile) - milliseconds(base, quantile);
        self.0.push(format!(
            "{name:<9} first byte, {chats:>3} chats: added p50 {:.2} ms, p99 {:.2} ms (direct p50 {:.2}, p99 {:.2}; {} of {} arrived)",
            added(0.5),
            added(0.99),
            milliseconds(base, 0.5),
            milliseconds(base, 0.99),
            measured.len(),
            base.len(),
        ));
    }

    /// Adds the replies per second at full speed.
    pub(crate) fn throughput(&mut self, name: &str, base: f64, measured: f64) {
        let ratio = measured / base;
        self.0.push(format!(
            "{name:<9} full speed: {measured:.0} replies/s, {ratio:.3} of direct ({base:.0})"
        ));
    }

    /// Adds the times of one organization without and with the load of another.
    pub(crate) fn isolation(
        &mut self,
        name: &str,
        alone: &Histogram<u64>,
        beside: &Histogram<u64>,
    ) {
        let of = |quantile: f64| {
            let times = [alone, beside].map(|times| as_f64(times.value_at_quantile(quantile)));
            format!("{:.2} of {:.2} ms", times[1] / times[0], times[0] / 1e3)
        };
        self.0.push(format!(
            "{name:<9} first byte beside an organization with ten times its share: p50 {}, p99 {} ({} of {} arrived)",
            of(0.5),
            of(0.99),
            beside.len(),
            alone.len(),
        ));
    }

    /// Adds the memory of open streams.
    pub(crate) fn memory(&mut self, name: &str, streams: usize, idle_kib: u64, open_kib: u64) {
        let each = as_f64(open_kib.saturating_sub(idle_kib)) / as_f64(streams as u64);
        let idle_mib = idle_kib / 1024;
        self.0.push(format!(
            "{name:<9} memory: {each:.1} KiB per open stream at {streams}, {idle_mib} MiB before (all processes)"
        ));
    }

    /// Prints the report.
    #[expect(clippy::print_stdout, reason = "the table is what this program is for")]
    pub(crate) fn print(&self) {
        println!("\n{}", self.0.join("\n"));
    }
}

/// Converts a value, which is far below 2^52.
fn as_f64(value: u64) -> f64 {
    value as f64
}
