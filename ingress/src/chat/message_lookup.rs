//! Looks up a reply by its id alone: final replies in the store, others through their conversation
//! or the record of their acceptance. The caller's key is checked first; the page's origin is
//! checked where an agent's page would stream or cancel the reply.

use axum::extract::{FromRequestParts, Path};
use http::{HeaderMap, header, request::Parts};
use serde::Deserialize;
use switchboard_backends::store::{ReplyRecord, ReplyState};
use switchboard_schemas::{
    api_key::KeyScope,
    conversation::{Conversation, ConversationOwner, ReplyStatus},
    ids::{AgentId, MessageId, OrgId},
    time::Timestamp,
};
use utoipa::IntoParams;

use crate::{
    auth::{
        authorized_agent::check_origin,
        caller::{AccessPolicy, AuthorizedCaller},
        id_hints,
    },
    http::{ApiError, ApiResult, ErrorCode},
    limits::RateLimitBucket,
    reply::{
        assembly::{AssemblyStep, FrameSource, ReplyAssembly},
        recovery::stored_text,
        view::ReplyView,
    },
    state::AppState,
};

/// Access policy for reading, following and canceling a message.
pub(crate) struct MessageAccess;

impl AccessPolicy for MessageAccess {
    const BUCKET: RateLimitBucket = RateLimitBucket::Conversations;
    const SCOPES: &'static [KeyScope] = &[KeyScope::Chat];
    const OPEN_TO_VISITORS: bool = true;
    const NEEDS_ACTIVE: bool = false;
}

/// The message of a path.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Path)]
pub(crate) struct MessagePath {
    /// The id of the reply, from `X-Message-Id`.
    #[param(example = "msg_7777777777777777777777777777777777777777777777777777")]
    message_id: String,
}

/// A reply of the caller's organization.
pub(crate) struct AuthorizedMessage {
    /// The organization that owns the message.
    pub(crate) org: OrgId,
    pub(crate) reply: MessageId,
    stage: ReplyStage,
}

/// Progress of a reply, and the data available at that point.
enum ReplyStage {
    Open {
        status: ReplyStatus,
        owner: ConversationOwner,
        since: Timestamp,
    },
    Final(Box<ReplyRecord>),
}

impl FromRequestParts<AppState> for AuthorizedMessage {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> ApiResult<Self> {
        let caller = AuthorizedCaller::<MessageAccess>::from_request_parts(parts, state).await?;
        let path = Path::<MessagePath>::from_request_parts(parts, state).await;
        let text = path.map_or_else(|_| String::new(), |Path(path)| path.message_id);
        let message_id: MessageId = text.parse().map_err(|_| not_found(&text))?;
        // Decided by the id alone, so that response times do not reveal which messages exist.
        if !caller.may_access(&message_id.conversation()) {
            return Err(not_found(&text));
        }
        let found = Self::find(state, caller.org_id(), message_id).await?;
        caller.check_origin(&parts.headers, state)?;
        Ok(found)
    }
}

impl AuthorizedMessage {
    /// Returns the reply with this id, or `MESSAGE_NOT_FOUND`.
    pub(crate) async fn find(state: &AppState, org: &OrgId, reply: MessageId) -> ApiResult<Self> {
        let stage = match stage_of(state, org, &reply).await? {
            Some(stage) => stage,
            // The reply may have become final between the two reads.
            None => stage_of(state, org, &reply)
                .await?
                .ok_or_else(|| not_found(reply.as_str()))?,
        };
        Ok(Self {
            org: org.clone(),
            reply,
            stage,
        })
    }

    /// Reads the current state of the same reply.
    pub(crate) async fn reload(&self, state: &AppState) -> ApiResult<Self> {
        Self::find(state, &self.org, self.reply.clone()).await
    }

    /// Returns true once the reply has its final state.
    pub(crate) const fn is_final(&self) -> bool {
        matches!(self.stage, ReplyStage::Final(_))
    }

    /// Returns the time of acceptance of a reply that is not final.
    pub(crate) const fn open_since(&self) -> Option<Timestamp> {
        match &self.stage {
            ReplyStage::Open { since, .. } => Some(*since),
            ReplyStage::Final(_) => None,
        }
    }

    /// Rejects requests from pages that the agent does not allow. Teams have no allowlist of their
    /// own.
    pub(crate) async fn check_origin(
        &self,
        state: &AppState,
        headers: &HeaderMap,
    ) -> ApiResult<()> {
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        if let Some(agent) = self.addressed_agent(state).await?
            && let Some(agent) = state.catalog.agent(&agent).await?
        {
            check_origin(headers, &agent)?;
        }
        Ok(())
    }

    /// Returns the public JSON view of the reply.
    pub(crate) async fn to_view(&self, state: &AppState) -> ApiResult<ReplyView> {
        let mut view = match &self.stage {
            ReplyStage::Open { status, since, .. } => self.open_view(state, *status, *since).await,
            ReplyStage::Final(record) => {
                let text = stored_text(state, &self.org, &self.reply, record).await?;
                let detail = "the text of the message is not readable yet";
                let text = text.ok_or_else(|| ApiError::unavailable(detail))?;
                ReplyView::of_record(self.reply.clone(), record, text)
            }
        };
        if let Some(agent) = self.addressed_agent(state).await? {
            view.name_agent(state, Some(&agent)).await;
        }
        Ok(view)
    }

    /// Returns the view of a reply that has no final state in the store, as its log contains it.
    /// The log knows first that a waiting reply was cancelled.
    async fn open_view(
        &self,
        state: &AppState,
        status: ReplyStatus,
        since: Timestamp,
    ) -> ReplyView {
        let (mut assembly, mut text, mut ended) = (ReplyAssembly::default(), Vec::new(), None);
        let frames = state
            .backends
            .relay
            .read_frames(&self.reply, 0)
            .await
            .unwrap_or_default();
        for frame in frames {
            match assembly.apply_frame(frame, FrameSource::Log) {
                AssemblyStep::Text(bytes) => text.extend_from_slice(&bytes),
                AssemblyStep::Ended(end) => ended = Some(end),
                _ => {}
            }
        }
        let mut view = ReplyView::new(self.reply.clone(), status, since);
        view.content = String::from_utf8_lossy(&text).into_owned();
        view.take_assembly(&assembly);
        if let Some(end) = ended {
            view.take_end(&end);
        }
        view
    }

    /// Returns the agent that was addressed, or `None` for a team.
    async fn addressed_agent(&self, state: &AppState) -> ApiResult<Option<AgentId>> {
        let owner = match &self.stage {
            ReplyStage::Open { owner, .. } => Some(owner.clone()),
            ReplyStage::Final(_) => {
                let conversation = state
                    .backends
                    .store
                    .conversation(&self.org, &self.reply.conversation())
                    .await?;
                conversation.map(|conversation| conversation.owner)
            }
        };
        Ok(match owner {
            Some(ConversationOwner::Agent(agent)) => Some(agent),
            Some(ConversationOwner::Team(_)) | None => None,
        })
    }
}

async fn stage_of(
    state: &AppState,
    org: &OrgId,
    reply: &MessageId,
) -> ApiResult<Option<ReplyStage>> {
    let store = &state.backends.store;
    let accepted = match store.known_reply(org, reply).await? {
        Some(ReplyState::Final(record)) => return Ok(Some(ReplyStage::Final(record))),
        Some(ReplyState::Accepted(accepted)) => Some(accepted),
        Some(ReplyState::Deleted) => return Ok(None),
        None => None,
    };
    let conversation = store.conversation(org, &reply.conversation()).await?;
    // A reply that just ended is no longer active, while its final state may not be readable yet.
    let is_open = |conversation: &Conversation| {
        [&conversation.active_message_id, &conversation.last_reply_id]
            .into_iter()
            .flatten()
            .any(|id| id == reply)
    };
    if let Some(conversation) = conversation.filter(is_open) {
        let since = accepted.map_or(conversation.updated_at, |accepted| accepted.accepted_at);
        let status = ReplyStatus::InProgress;
        return Ok(Some(ReplyStage::Open {
            status,
            owner: conversation.owner,
            since,
        }));
    }
    Ok(accepted.map(|accepted| ReplyStage::Open {
        status: match accepted.owner {
            ConversationOwner::Agent(_) => ReplyStatus::Queued,
            ConversationOwner::Team(_) => ReplyStatus::Routing,
        },
        owner: accepted.owner,
        since: accepted.accepted_at,
    }))
}

fn not_found(id: &str) -> ApiError {
    let detail = id_hints::no_public("message", id);
    ApiError::new(ErrorCode::MessageNotFound, detail)
}
