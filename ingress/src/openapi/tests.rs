//! Stays true to itself.
