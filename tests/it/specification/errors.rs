//! Section "Errors": one test for each row of its table, on every endpoint that can answer with it.

use crate::support::{Answer, Endpoint, Endpoints, SharedService};

const CONFIGURATIONS_AND_CHAT: [Endpoint; 3] = [
    Endpoint::AgentChat,
    Endpoint::AgentConfiguration,
    Endpoint::WidgetConfiguration,
];
const CONVERSATIONS: [Endpoint; 2] = [Endpoint::ConversationRead, Endpoint::ConversationUpdate];

/// Asserts that each of these endpoints answers with this code; gives the answers.
async fn assert_code(status: u16, code: &str, endpoints: &[Endpoint]) -> Vec<Answer> {
    let service = SharedService::get().await;
    let prepared = Endpoints::prepare(&service).await;
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
async fn invalid_agent_id_is_400_agent_id_missing_or_empty() {
    assert_code(400, "INVALID_AGENT_ID", &Endpoint::OF_AGENTS).await;
}

#[tokio::test]
async fn invalid_session_id_is_400_session_id_missing() {
    assert_code(400, "INVALID_SESSION_ID", &CONVERSATIONS).await;
}

#[tokio::test]
async fn invalid_request_data_is_400_message_or_session_id_missing() {
    assert_code(400, "INVALID_REQUEST_DATA", &[Endpoint::AgentChat]).await;
}

#[tokio::test]
async fn invalid_json_is_400_request_body_is_not_valid_json() {
    let endpoints = [
        Endpoint::AgentChat,
        Endpoint::TeamChat,
        Endpoint::ConversationUpdate,
    ];
    assert_code(400, "INVALID_JSON", &endpoints).await;
}

#[tokio::test]
async fn invalid_rating_is_400_rating_not_a_number_from_1_to_5() {
    assert_code(400, "INVALID_RATING", &[Endpoint::ConversationUpdate]).await;
}

#[tokio::test]
async fn missing_api_key_is_401_no_key_supplied() {
    assert_code(401, "MISSING_API_KEY", &Endpoint::ALL).await;
}

#[tokio::test]
async fn invalid_api_key_is_401_key_invalid_or_deleted() {
    assert_code(401, "INVALID_API_KEY", &Endpoint::ALL).await;
}

#[tokio::test]
async fn expired_api_key_is_401_key_expired() {
    assert_code(401, "EXPIRED_API_KEY", &Endpoint::ALL).await;
}

#[tokio::test]
async fn org_mismatch_is_403_the_keys_organization_differs_from_the_agents() {
    for answer in assert_code(403, "ORG_MISMATCH", &Endpoint::OF_AGENTS).await {
        assert!(!answer.text.contains("canary"), "{}", answer.text);
    }
}

#[tokio::test]
async fn insufficient_scope_is_403_key_lacks_the_required_scope() {
    assert_code(403, "INSUFFICIENT_SCOPE", &Endpoint::ALL).await;
}

#[tokio::test]
async fn agent_not_public_is_403_agent_is_not_public() {
    assert_code(403, "AGENT_NOT_PUBLIC", &Endpoint::OF_AGENTS).await;
}

#[tokio::test]
async fn agent_inactive_is_403_agent_status_is_not_active() {
    assert_code(403, "AGENT_INACTIVE", &CONFIGURATIONS_AND_CHAT).await;
}

#[tokio::test]
async fn domain_not_allowed_is_403_request_origin_not_among_the_agents_allowed_domains() {
    assert_code(403, "DOMAIN_NOT_ALLOWED", &[Endpoint::AgentChat]).await;
}

#[tokio::test]
async fn agent_not_found_is_404_agent_does_not_exist() {
    assert_code(404, "AGENT_NOT_FOUND", &Endpoint::OF_AGENTS).await;
}

#[tokio::test]
async fn conversation_not_found_is_404_no_conversation_for_the_session() {
    assert_code(404, "CONVERSATION_NOT_FOUND", &CONVERSATIONS).await;
}

#[tokio::test]
async fn rate_limited_is_429_and_carries_a_retry_after_header() {
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
