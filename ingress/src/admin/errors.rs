//! Validation errors of an admin request, each with the path of its field.

use crate::http::{ApiError, ErrorCode};

/// A field that is missing, unknown or invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct ValidationError {
    /// The path of the field, for instance `organizations[0].agents[1].provider`.
    pub path: String,
    /// The rule that it breaks.
    pub reason: String,
}

/// Fields of a request that can be validated before anything is written.
pub(super) trait ValidateFields {
    /// Fails with the first field that breaks a rule; paths are relative to `self`.
    fn validate(&self) -> Result<(), ValidationError>;
}

impl ValidationError {
    /// Creates the error of one field.
    pub(super) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
        }
    }

    /// Returns the error with the path of the enclosing object, `parent`, in front of its path.
    pub(super) fn below(mut self, parent: &str) -> Self {
        self.path = match (parent.is_empty(), self.path.is_empty()) {
            (true, _) => self.path,
            (false, true) => parent.to_owned(),
            (false, false) if self.path.starts_with('[') => format!("{parent}{}", self.path),
            (false, false) => format!("{parent}.{}", self.path),
        };
        self
    }

    /// Returns the error with the name of the field in its path, if a field is missing.
    pub(super) fn naming_missing_field(self) -> Self {
        let missing = self.reason.strip_prefix("missing field `");
        match missing.and_then(|rest| rest.strip_suffix('`')) {
            Some(field) => Self::new(field, "is missing").below(&self.path),
            None => self,
        }
    }
}

impl From<ValidationError> for ApiError {
    fn from(error: ValidationError) -> Self {
        let api_error = Self::new(ErrorCode::InvalidRequestData, error.reason);
        if error.path.is_empty() {
            api_error
        } else {
            api_error.param(error.path)
        }
    }
}
