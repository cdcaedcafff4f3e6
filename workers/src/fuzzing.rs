//! Entry points of the fuzz targets, which are outside this crate.

/// Checks that a model's stream has the same output whole and in any pieces.
pub fn model_stream(body: &[u8], sizes: &[u8]) {
    crate::model::fuzzing::check_stream(body, sizes);
}
