//! Which conversation a path means: the agent's own of this session, or a team's or a page visitor's in which the agent
//! answered. The holder of a visitor token has its own conversation of the session and no other.

use switchboard_schemas::{
    conversation::Conversation,
    ids::{ConversationId, OrgId},
};

use crate::{
    client_address::CountedAddress,
    error::ApiResult,
    query,
    reachable::{ConversationAccess, ReachableAgent, conversation_not_found},
    state::AppState,
};

/// What a query asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// Nothing: the agent's own, else the one it answered in last.
    Any,
    /// This one, if it is the agent's own or the agent answered in it.
    One(ConversationId),
    /// What is no id.
    Nothing,
}

/// Reads `conversationId` of a query string.
pub(super) fn named(query: &str) -> Named {
    match query::value(query, "conversationId") {
        None => Named::Any,
        Some(id) => id.parse().map_or(Named::Nothing, Named::One),
    }
}

/// The conversation, which must exist and be the caller's to read.
pub(super) async fn find(
    state: &AppState,
    address: &CountedAddress,
    reached: &ReachableAgent<ConversationAccess>,
    named: &Named,
) -> ApiResult<Conversation> {
    if reached.caller.visitor_id().is_some() {
        // There is nothing to guess: other sessions' conversations have ids that no session id of a visitor gives.
        return find_own(state, reached, named).await;
    }
    state
        .limits
        .guard_session(
            reached.caller.org_id(),
            address,
            look(state, reached, named),
        )
        .await
}

async fn find_own(
    state: &AppState,
    reached: &ReachableAgent<ConversationAccess>,
    named: &Named,
) -> ApiResult<Conversation> {
    let own = reached
        .caller
        .conversation(&reached.agent.id, &reached.session_id()?);
    match named {
        Named::Any => {}
        Named::One(id) if *id == own => {}
        Named::One(_) | Named::Nothing => return Err(conversation_not_found()),
    }
    first_existing(state, reached.caller.org_id(), &[own]).await
}

async fn look(
    state: &AppState,
    reached: &ReachableAgent<ConversationAccess>,
    named: &Named,
) -> ApiResult<Conversation> {
    let (org, agent, session) = (
        reached.caller.org_id(),
        &reached.agent.id,
        reached.session_id()?,
    );
    let own = reached.caller.conversation(agent, &session);
    let candidates = match named {
        Named::Nothing => return Err(conversation_not_found()),
        Named::One(id) if *id == own => vec![own],
        Named::Any => {
            if let Some(conversation) = state.backends.store.conversation(org, &own).await? {
                return Ok(conversation);
            }
            state
                .backends
                .store
                .linked_conversations(org, agent, &session)
                .await?
        }
        Named::One(id) => {
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

    #[test]
    fn a_query_names_a_conversation_or_any_or_none() {
        let id = format!("conv_{}", "0".repeat(26));
        assert_eq!(named(""), Named::Any);
        assert_eq!(named("limit=2&offset=1"), Named::Any);
        assert_eq!(
            named(&format!("limit=2&conversationId={id}")),
            Named::One(id.parse().unwrap())
        );
        for text in [
            "conversationId=",
            "conversationId=x",
            "conversationId=conv_%20",
        ] {
            assert_eq!(named(text), Named::Nothing, "{text}");
        }
    }
}
