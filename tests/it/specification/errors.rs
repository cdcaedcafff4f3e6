//! Section "Errors": one test for each row of its table, on every endpoint that can return the
//! error.

use crate::support::{Answer, Endpoint, Endpoints};

const CONFIGURATIONS_AND_CHAT: [Endpoint; 3] = [
    Endpoint::AgentChat,
    Endpoint::AgentConfiguration,
    Endpoint::WidgetConfiguration,
];
const CONVERSATIONS: [Endpoint; 2] = [Endpoint::ConversationRead, Endpoint::ConversationUpdate];

/// Asserts that each endpoint responds with this code and returns the responses.
async fn assert_code(status: u16, code: &str, endpoints: &[Endpoint]) -> Vec<Answer> {
    let prepared = Endpoints::prepare().await;
    let mut answers = vec![];
    for endpoint in endpoints {
        let answer = prepared.provoke(*endpoint, code).await;
        assert_eq!(
            answer.status, status,
            "{endpoint:?} {code}: {}",
            answer.text
        );
        answer.assert_problem(status, Some(code));
        answers.push(answer);
    }
    answers
}

#[tokio::test]
async fn missing_agent_id_is_400_invalid_agent_id() {
    assert_code(400, "INVALID_AGENT_ID", &Endpoint::OF_AGENTS).await;
}

#[tokio::test]
async fn missing_session_id_is_400_invalid_session_id() {
    assert_code(400, "INVALID_SESSION_ID", &CONVERSATIONS).await;
}

#[tokio::test]
async fn missing_message_or_session_id_is_400_invalid_request_data() {
    assert_code(400, "INVALID_REQUEST_DATA", &[Endpoint::AgentChat]).await;
}

#[tokio::test]
async fn malformed_body_is_400_invalid_json() {
    let endpoints = [
        Endpoint::AgentChat,
        Endpoint::TeamChat,
        Endpoint::ConversationUpdate,
    ];
    assert_code(400, "INVALID_JSON", &endpoints).await;
}

#[tokio::test]
async fn rating_out_of_range_is_400_invalid_rating() {
    assert_code(400, "INVALID_RATING", &[Endpoint::ConversationUpdate]).await;
}

#[tokio::test]
async fn missing_key_is_401_missing_api_key() {
    assert_code(401, "MISSING_API_KEY", &Endpoint::ALL).await;
}

#[tokio::test]
async fn unknown_or_deleted_key_is_401_invalid_api_key() {
    assert_code(401, "INVALID_API_KEY", &Endpoint::ALL).await;
}

#[tokio::test]
async fn expired_key_is_401_expired_api_key() {
    assert_code(401, "EXPIRED_API_KEY", &Endpoint::ALL).await;
}

#[tokio::test]
async fn key_of_another_organization_is_403_org_mismatch() {
    for answer in assert_code(403, "ORG_MISMATCH", &Endpoint::OF_AGENTS).await {
        assert!(!answer.text.contains("canary"), "{}", answer.text);
    }
}

#[tokio::test]
async fn missing_scope_is_403_insufficient_scope() {
    assert_code(403, "INSUFFICIENT_SCOPE", &Endpoint::ALL).await;
}

#[tokio::test]
async fn non_public_agent_is_403_agent_not_public() {
    assert_code(403, "AGENT_NOT_PUBLIC", &Endpoint::OF_AGENTS).await;
}

#[tokio::test]
async fn inactive_agent_is_403_agent_inactive() {
    assert_code(403, "AGENT_INACTIVE", &CONFIGURATIONS_AND_CHAT).await;
}

#[tokio::test]
async fn other_origin_is_403_domain_not_allowed() {
    assert_code(403, "DOMAIN_NOT_ALLOWED", &[Endpoint::AgentChat]).await;
}

#[tokio::test]
async fn unknown_agent_is_404_agent_not_found() {
    assert_code(404, "AGENT_NOT_FOUND", &Endpoint::OF_AGENTS).await;
}

#[tokio::test]
async fn unknown_session_is_404_conversation_not_found() {
    assert_code(404, "CONVERSATION_NOT_FOUND", &CONVERSATIONS).await;
}

#[tokio::test]
async fn exceeded_limit_is_429_rate_limited_with_retry_after() {
    for endpoint in Endpoint::ALL {
        for answer in assert_code(429, "RATE_LIMITED", &[endpoint]).await {
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
}
