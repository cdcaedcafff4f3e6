//! Macro that runs conformance functions as tests of the embedded and the Scylla backend.

/// Creates one test for each function and backend. Expects `embedded_subject` and, with the feature
/// `real-services`, `scylla_subject`.
macro_rules! conformance_tests {
    ($($test:ident,)*) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(super::embedded_subject()).await;
                }
            )*
        }

        #[cfg(feature = "real-services")]
        mod real_scylla {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(super::scylla_subject().await).await;
                }
            )*
        }
    };
}
