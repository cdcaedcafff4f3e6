//! Limits of the request head.

use super::{config_request, connect};
use crate::support::shop_saying;

#[tokio::test]
async fn head_beyond_the_limit_is_refused_and_closes_the_connection() {
    let organization = shop_saying("ok").await;
    let wide = format!("x-wide: {}\r\n", "x".repeat(64 << 10));
    let many: String = (0..1_000)
        .map(|number| format!("x-{number}: y\r\n"))
        .collect();
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(64 << 10));
    for request in [
        config_request(&organization, &wide),
        config_request(&organization, &many),
        long_path,
    ] {
        let mut connection = connect(&organization).await;
        connection.write(&request).await;
        let response = String::from_utf8(connection.read_to_end().await).unwrap();
        let status = response.split(' ').nth(1).unwrap_or_default();
        assert!(
            ["431", "414", ""].contains(&status),
            "{:.60}: {response}",
            request
        );
        assert!(response.matches("HTTP/1.1 ").count() <= 1, "{response}");
    }
}

#[tokio::test]
async fn head_with_many_browser_cookies_is_accepted() {
    let organization = shop_saying("ok").await;
    let mut connection = connect(&organization).await;
    connection
        .write(config_request(
            &organization,
            &format!("cookie: {}\r\n", "c".repeat(8 << 10)),
        ))
        .await;
    assert_eq!(
        connection.read_answer().await.expect("an answer").status,
        200
    );
}

#[tokio::test]
async fn overlong_key_is_invalid_and_no_server_error() {
    let organization = shop_saying("ok").await;
    let path = organization.path("");
    let client = organization
        .service()
        .client()
        .with_key(&"k".repeat(8 << 10));
    client
        .get(&path)
        .await
        .assert_problem(401, Some("INVALID_API_KEY"));
}
