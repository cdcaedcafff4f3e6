//! Section "Versioning". `browser::widget::strict_pages` tests the script path with `v1`.

use serde_json::json;

use crate::support::{Endpoint, Endpoints, send};

#[tokio::test]
async fn paths_start_with_api_public_without_a_version_segment() {
    let endpoints = Endpoints::prepare().await;
    for endpoint in Endpoint::ALL {
        assert_eq!(
            endpoints.succeed(endpoint).await.status,
            200,
            "{endpoint:?}"
        );
        for wrong in ["/api/v1/public/", "/api/public/v1/", "/v1/", "/"] {
            let path = endpoint
                .path(endpoints.ours.shop(), "s")
                .replacen("/api/public/", wrong, 1);
            let request = endpoints
                .ours
                .client()
                .request(endpoint.method(), &path)
                .json(&json!({}));
            send(request).await.assert_problem(404, Some("NOT_FOUND"));
        }
    }
}
