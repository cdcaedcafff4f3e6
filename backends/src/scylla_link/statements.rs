//! The macro that declares prepared statements together with their text.

/// Declares a struct of prepared statements and its `new`, which prepares them all; the fields
/// after `with` are further structs of statements.
macro_rules! statements {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident { $($prepare:ident $field:ident = $cql:expr,)* }
        $(with { $($part:ident: $type:ty,)* })?
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $($visibility $field: scylla::statement::prepared::PreparedStatement,)*
            $($($visibility $part: $type,)*)?
        }

        impl $name {
            /// Prepares the statements.
            $visibility async fn new(
                link: &$crate::scylla_link::ScyllaLink,
            ) -> Result<Self, $crate::error::StoreError> {
                Ok(Self {
                    $($field: link.$prepare($cql).await?,)*
                    $($($part: <$type>::new(link).await?,)*)?
                })
            }
        }
    };
}

pub(crate) use statements;
