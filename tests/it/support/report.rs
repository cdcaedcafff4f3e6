//! Measurements printed by a test run, also when its tests pass.

use std::io::Write;

/// Writes a line that the test harness does not capture.
pub(crate) fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "measured: {line}");
}
