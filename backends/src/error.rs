//! The error of every store: conversations, analytics, catalog, products and accounts.

/// An error of a store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached or did not respond in time. A write may have happened; repeating
    /// it is safe.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The store refuses a statement as it is, so that repeating it is useless.
    #[error("store refuses {0}")]
    Refused(String),
    /// A stored row cannot be parsed.
    #[error("store holds a malformed row: {0}")]
    Malformed(String),
}
