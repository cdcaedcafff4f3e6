//! The rules that no compiler checks, checked over the source itself.

fn main() {}
