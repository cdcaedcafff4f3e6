//! Resolves the conversation of a path: the agent's own conversation of the session, or one of a
//! team or page visitor in which the agent answered. A visitor token reaches only the visitor's own
//! conversation.

use serde::Deserialize;
use switchboard_schemas::{
    conversation::Conversation,
    ids::{ConversationId, OrgId},
};
use utoipa::IntoParams;

use crate::{
    auth::authorized_agent::{AuthorizedAgent, ConversationAccess, conversation_not_found},
    http::{ApiResult, RateLimitAddress},
    state::AppState,
};

/// The choice between two conversations of one session.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ConversationQuery {
    /// The id of the conversation. Needed only if the agent itself and a team both have a
    /// conversation with this session.
    #[param(value_type = String, required = false)]
    conversation_id: Option<String>,
}

/// Conversation requested by the `conversationId` query parameter.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SessionChoice {
    /// No parameter: the agent's own conversation, otherwise the last one that it answered in.
    Any,
    /// A given conversation, if it is the agent's own or the agent answered in it.
    One(ConversationId),
    /// A value that is not an id; matches no conversation.
    Nothing,
}

impl SessionChoice {
    /// Returns the choice that a query makes.
    pub(super) fn from_query(query: &ConversationQuery) -> Self {
        let id = query.conversation_id.as_ref();
        id.map_or(Self::Any, |id| id.parse().map_or(Self::Nothing, Self::One))
    }
}

/// Returns the conversation, or `CONVERSATION_NOT_FOUND` if it does not exist or the caller may not
/// read it.
pub(super) async fn find_conversation(
    state: &AppState,
    address: &RateLimitAddress,
    reached: &AuthorizedAgent<ConversationAccess>,
    named: &SessionChoice,
) -> ApiResult<Conversation> {
    if reached.caller.visitor_id().is_some() {
        // No guessing is possible here: the session ids of a visitor never lead to conversations of
        // others.
        return find_own(state, reached, named).await;
    }
    state
        .limits
        .guard_session(
            reached.caller.org_id(),
            address,
            find_linked(state, reached, named),
        )
        .await
}

async fn find_own(
    state: &AppState,
    reached: &AuthorizedAgent<ConversationAccess>,
    named: &SessionChoice,
) -> ApiResult<Conversation> {
    let own = reached
        .caller
        .conversation_id(&reached.agent.id, &reached.session_id()?);
    match named {
        SessionChoice::Any => {}
        SessionChoice::One(id) if *id == own => {}
        SessionChoice::One(_) | SessionChoice::Nothing => return Err(conversation_not_found()),
    }
    first_existing(state, reached.caller.org_id(), &[own]).await
}

async fn find_linked(
    state: &AppState,
    reached: &AuthorizedAgent<ConversationAccess>,
    named: &SessionChoice,
) -> ApiResult<Conversation> {
    let (org, agent, session) = (
        reached.caller.org_id(),
        &reached.agent.id,
        reached.session_id()?,
    );
    let own = reached.caller.conversation_id(agent, &session);
    let candidates = match named {
        SessionChoice::Nothing => return Err(conversation_not_found()),
        SessionChoice::One(id) if *id == own => vec![own],
        SessionChoice::Any => {
            if let Some(conversation) = state.backends.store.conversation(org, &own).await? {
                return Ok(conversation);
            }
            state
                .backends
                .store
                .linked_conversations(org, agent, &session)
                .await?
        }
        SessionChoice::One(id) => {
            let mut linked = state
                .backends
                .store
                .linked_conversations(org, agent, &session)
                .await?;
            linked.retain(|linked| linked == id);
            linked
        }
    };
    first_existing(state, org, &candidates).await
}

async fn first_existing(
    state: &AppState,
    org: &OrgId,
    candidates: &[ConversationId],
) -> ApiResult<Conversation> {
    for id in candidates {
        if let Some(conversation) = state.backends.store.conversation(org, id).await? {
            return Ok(conversation);
        }
    }
    Err(conversation_not_found())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::query::parse_query;

    fn parse_choice(query: &str) -> SessionChoice {
        SessionChoice::from_query(&parse_query(query).unwrap())
    }

    #[test]
    fn query_selects_one_any_or_no_conversation() {
        let id = format!("conv_{}", "0".repeat(26));
        assert_eq!(parse_choice(""), SessionChoice::Any);
        assert_eq!(parse_choice("limit=2&offset=1"), SessionChoice::Any);
        assert_eq!(
            parse_choice(&format!("limit=2&conversationId={id}")),
            SessionChoice::One(id.parse().unwrap())
        );
        for text in [
            "conversationId=",
            "conversationId=x",
            "conversationId=conv_%20",
        ] {
            assert_eq!(parse_choice(text), SessionChoice::Nothing, "{text}");
        }
    }
}
