//! The embedded bus keeps the contract, and its own promises about its file.
