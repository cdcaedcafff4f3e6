//! Runs each sentence of a contract on both twins of what is stored: a test of its own for each, named as the sentence.

/// Expects `embedded_subject` and, where real services are at hand, `scylla_subject` beside it.
macro_rules! conformance_tests {
    ($($claim:ident,)*) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $claim() {
                    super::$claim(super::embedded_subject()).await;
                }
            )*
        }

        #[cfg(feature = "real-services")]
        mod scylla {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $claim() {
                    super::$claim(super::scylla_subject().await).await;
                }
            )*
        }
    };
}
