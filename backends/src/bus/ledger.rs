//! Offsets finished in any order, committed as a contiguous prefix.
