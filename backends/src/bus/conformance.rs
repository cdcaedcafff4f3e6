//! The contract of the bus, one function a sentence; both twins run them.
