//! Section "Errors": each row of its table, on every endpoint that can return the error.

use crate::support::{Endpoint, Endpoints};

const CONFIGURATIONS_AND_CHAT: [Endpoint; 3] = [
    Endpoint::AgentChat,
    Endpoint::AgentConfiguration,
    Endpoint::WidgetConfiguration,
];
const CONVERSATIONS: [Endpoint; 2] = [Endpoint::ConversationRead, Endpoint::ConversationUpdate];
const WITH_JSON: [Endpoint; 3] = [
    Endpoint::AgentChat,
    Endpoint::TeamChat,
    Endpoint::ConversationUpdate,
];

/// The rows of the table with the endpoints that can return the error. The limits have their own
/// test.
const ERRORS: [(u16, &str, &[Endpoint]); 15] = [
    (400, "INVALID_AGENT_ID", &Endpoint::OF_AGENTS),
    (400, "INVALID_SESSION_ID", &CONVERSATIONS),
    (400, "INVALID_REQUEST_DATA", &[Endpoint::AgentChat]),
    (400, "INVALID_JSON", &WITH_JSON),
    (400, "INVALID_RATING", &[Endpoint::ConversationUpdate]),
    (401, "MISSING_API_KEY", &Endpoint::ALL),
    (401, "INVALID_API_KEY", &Endpoint::ALL),
    (401, "EXPIRED_API_KEY", &Endpoint::ALL),
    (403, "ORG_MISMATCH", &Endpoint::OF_AGENTS),
    (403, "INSUFFICIENT_SCOPE", &Endpoint::ALL),
    (403, "AGENT_NOT_PUBLIC", &Endpoint::OF_AGENTS),
    (403, "AGENT_INACTIVE", &CONFIGURATIONS_AND_CHAT),
    (403, "DOMAIN_NOT_ALLOWED", &[Endpoint::AgentChat]),
    (404, "AGENT_NOT_FOUND", &Endpoint::OF_AGENTS),
    (404, "CONVERSATION_NOT_FOUND", &CONVERSATIONS),
];

#[tokio::test]
async fn each_endpoint_returns_its_errors_with_status_and_code() {
    let prepared = Endpoints::prepare().await;
    for (status, code, endpoints) in ERRORS {
        for endpoint in endpoints {
            let answer = prepared.provoke(*endpoint, code).await;
            assert_eq!(
                answer.status, status,
                "{endpoint:?} {code}: {}",
                answer.text
            );
            answer.assert_problem(status, Some(code));
            assert!(!answer.text.contains("canary"), "{}", answer.text);
        }
    }
}

#[tokio::test]
async fn exceeded_limit_is_429_rate_limited_with_retry_after() {
    let prepared = Endpoints::prepare().await;
    for endpoint in Endpoint::ALL {
        let answer = prepared.provoke(endpoint, "RATE_LIMITED").await;
        answer.assert_problem(429, Some("RATE_LIMITED"));
        let seconds = answer
            .header("retry-after")
            .and_then(|seconds| seconds.parse::<u64>().ok());
        assert!(
            seconds.is_some_and(|seconds| (1..=60).contains(&seconds)),
            "{:?}",
            answer.headers
        );
    }
}
