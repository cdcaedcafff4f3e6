//! The load driver.

fn main() {}
