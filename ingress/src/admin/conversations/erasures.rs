//! Erasures: all conversations of one visitor are deleted, and a receipt is kept.
//!
//! The receipt contains only digests of the visitor, so that each request must name the visitor
//! again. A request erases for a limited time and stores its progress in the receipt; further
//! requests, to any process, continue the erasure to its end.

use std::time::Duration;

use axum::{Extension, Json, extract::Query};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_backends::store::listing::{ListCursor, ListQuery};
use switchboard_schemas::{
    audit::{AuditAction, AuditActor, FieldChange},
    client_text::VisitorId,
    conversation::Conversation,
    erasure::{Erasure, ErasureCursor, ErasureRequester, VisitorDigest},
    ids::{ErasureId, EventId, OrgId, RequestId},
    time::Timestamp,
};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{
    deletion::delete_conversation,
    filter::{READ_MAX, is_same_address},
    leads, read_all,
};
use crate::{
    admin::{
        authorization::Admin,
        authorization::ResourceId,
        bodies::{JsonBody, JsonObject, RequestBody, parse_fields},
        entries::not_found,
        pages::{CursorPage, CursorQuery},
        permissions::{ActOnConversations, ReadConversations},
        responses::{DeletionResponse, JsonResponse},
    },
    http::{ApiError, ApiResult, fields},
    state::AppState,
};

/// The time for which one request erases. A deletion that has begun is finished.
const RUN_TIME: Duration = Duration::from_secs(10);
/// The longest id or address of a visitor, in bytes.
const VISITOR_BYTES_MAX: usize = 1024;

/// The visitor of an erasure, by id, e-mail address or both.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::admin) struct ErasedVisitor {
    /// The id of the visitor that the widget sent.
    #[schema(max_length = 1_024)]
    visitor_id: Option<String>,
    /// The visitor's e-mail address, regardless of case.
    #[schema(max_length = 1_024)]
    visitor_email: Option<String>,
}

/// The receipt of an erasure.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::admin) struct ErasureView {
    /// The id of the erasure.
    id: ErasureId,
    /// The state of the erasure.
    state: ErasureState,
    /// Keyed hashes of the visitor's id and address.
    visitor: VisitorDigest,
    /// The user or token that requested the erasure.
    by: ErasureRequester,
    /// The time of the first request; conversations that began later are kept.
    began_at: Timestamp,
    /// The time of the end.
    #[schema(required)]
    finished_at: Option<Timestamp>,
    /// The number of conversations that were searched.
    looked_at: u64,
    /// The number of conversations that were deleted.
    conversations: u64,
    /// The number of messages that were deleted.
    messages: u64,
}

/// The state of an erasure.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ErasureState {
    Running,
    Finished,
}

/// Starts an erasure and runs it for up to [`RUN_TIME`].
pub(in crate::admin) async fn create(
    admin: Admin<ActOnConversations>,
    Extension(request_id): Extension<RequestId>,
    body: JsonBody<ErasedVisitor>,
) -> ApiResult<JsonResponse<201, ErasureView>> {
    let state = &admin.state;
    let visitor = body.parse(state).await?;
    let erasure = Erasure {
        id: ErasureId::now(),
        org_id: admin.org().clone(),
        visitor: visitor.digest(&admin),
        by: match admin.administrator.actor() {
            AuditActor::User { id, .. } => ErasureRequester::User { id },
            AuditActor::Token | AuditActor::Command => ErasureRequester::Token,
        },
        began_at: Timestamp::now(),
        finished_at: None,
        place: None,
        steps: 0,
        looked_at: 0,
        conversations: 0,
        messages: 0,
    };
    // The receipt is stored before anything is deleted.
    state.backends.store.put_erasure(&erasure).await?;
    let subject = ("erasure", erasure.id.as_str());
    admin.record(subject, AuditAction::Create, Vec::new()).await;
    let erasure = run_erasure(state, erasure, &visitor, &request_id).await?;
    Ok(JsonResponse::new(ErasureView::from(erasure)))
}

/// Continues an erasure.
pub(in crate::admin) async fn proceed(
    admin: Admin<ActOnConversations>,
    ResourceId(id): ResourceId,
    Extension(request_id): Extension<RequestId>,
    body: JsonBody<ErasedVisitor>,
) -> ApiResult<Json<ErasureView>> {
    let erasure = find(&admin.state, admin.org(), &id).await?;
    let visitor = body.parse(&admin.state).await?;
    if visitor.digest(&admin) != erasure.visitor {
        let rule = "and visitorEmail must be those with which this erasure began";
        return Err(ApiError::field("visitorId", rule));
    }
    let before = erasure.steps;
    let erasure = run_erasure(&admin.state, erasure, &visitor, &request_id).await?;
    if erasure.steps > before {
        let steps = FieldChange {
            field: "steps".into(),
            before: None,
            after: Some(erasure.steps.into()),
        };
        admin
            .record(("erasure", &id), AuditAction::Update, vec![steps])
            .await;
    }
    Ok(Json(erasure.into()))
}

/// Reads the receipt of one erasure.
pub(in crate::admin) async fn read(
    admin: Admin<ReadConversations>,
    ResourceId(id): ResourceId,
) -> ApiResult<Json<ErasureView>> {
    Ok(Json(find(&admin.state, admin.org(), &id).await?.into()))
}

/// Lists a page of the receipts, latest first.
pub(in crate::admin) async fn list(
    admin: Admin<ReadConversations>,
    Query(page): Query<CursorQuery>,
) -> ApiResult<Json<CursorPage<ErasureView>>> {
    let (before, limit) = (
        page.cursor(|id| id.parse::<ErasureId>().ok())?,
        page.limit(),
    );
    let count = u32::try_from(limit).unwrap_or(u32::MAX);
    let store = &admin.state.backends.store;
    let found = store.erasures(admin.org(), before.as_ref(), count).await?;
    let last = found.last().filter(|_| found.len() == limit);
    let next_cursor = last.map(|last| last.id.as_str().to_owned());
    let items = found.into_iter().map(ErasureView::from).collect();
    Ok(CursorPage::new(items, limit, next_cursor))
}

async fn find(state: &AppState, org: &OrgId, id: &str) -> ApiResult<Erasure> {
    let not_found = || not_found("erasure", id);
    let id: ErasureId = id.parse().map_err(|_| not_found())?;
    let found = state.backends.store.erasure(org, &id).await?;
    found.ok_or_else(not_found)
}

/// Erases for up to [`RUN_TIME`] and stores the progress, even after a failure.
async fn run_erasure(
    state: &AppState,
    erasure: Erasure,
    visitor: &ErasedVisitor,
    request: &RequestId,
) -> ApiResult<Erasure> {
    if erasure.finished_at.is_some() {
        return Ok(erasure);
    }
    let (mut after, until) = (erasure, Instant::now() + RUN_TIME);
    after.steps += 1;
    let mut outcome = Ok(());
    while outcome.is_ok() && after.finished_at.is_none() && Instant::now() < until {
        outcome = erase_part(state, &mut after, visitor, request, until).await;
    }
    state.backends.store.put_erasure(&after).await?;
    if outcome.is_err() {
        tracing::warn!(erasure.id = %after.id, "erasure interrupted, another request continues it");
    }
    Ok(after)
}

/// Erases the conversations of the visitor in one part of the list.
async fn erase_part(
    state: &AppState,
    erasure: &mut Erasure,
    visitor: &ErasedVisitor,
    request: &RequestId,
    until: Instant,
) -> ApiResult<()> {
    let org = erasure.org_id.clone();
    let place = erasure.place.as_ref();
    let part = ListQuery {
        owner: None,
        since: None,
        behind: Some(ListCursor {
            began_at: place.map_or(erasure.began_at, |place| place.began_at),
            id: place.and_then(|place| place.id.clone()),
        }),
        limit: READ_MAX,
    };
    let listed = state.backends.store.conversations(&org, &part).await?;
    let is_last = listed.len() < READ_MAX as usize;
    let mut found = read_all(state, &org, listed);
    while let Some((listed, conversation)) = found.try_next().await? {
        if let Some(conversation) = conversation.filter(|it| visitor.matches(it)) {
            erase_conversation(state, erasure, &conversation, request).await?;
        }
        erasure.looked_at += 1;
        erasure.place = Some(ErasureCursor {
            began_at: listed.began_at,
            id: Some(listed.id),
        });
        if Instant::now() >= until {
            return Ok(());
        }
    }
    if is_last {
        visitor.erase_uploads(state, &org).await?;
        (erasure.finished_at, erasure.place) = (Some(Timestamp::now()), None);
    }
    Ok(())
}

/// Deletes one conversation. Every attempt uses the same event, so that it is one deletion.
async fn erase_conversation(
    state: &AppState,
    erasure: &mut Erasure,
    conversation: &Conversation,
    request: &RequestId,
) -> ApiResult<()> {
    let event = EventId::derive(erasure.id.as_str(), conversation.id.as_str());
    let deletion = delete_conversation(state, conversation, event, request).await?;
    if deletion == DeletionResponse::Accepted {
        return Err(ApiError::unavailable("a conversation is not deleted yet"));
    }
    erasure.conversations += 1;
    erasure.messages += conversation.message_count;
    Ok(())
}

impl From<Erasure> for ErasureView {
    fn from(erasure: Erasure) -> Self {
        let state = match erasure.finished_at {
            Some(_) => ErasureState::Finished,
            None => ErasureState::Running,
        };
        Self {
            id: erasure.id,
            state,
            visitor: erasure.visitor,
            by: erasure.by,
            began_at: erasure.began_at,
            finished_at: erasure.finished_at,
            looked_at: erasure.looked_at,
            conversations: erasure.conversations,
            messages: erasure.messages,
        }
    }
}

impl ErasedVisitor {
    /// Deletes the files that the visitor uploaded and sent with no message; the others are deleted
    /// with their conversations.
    async fn erase_uploads(&self, state: &AppState, org: &OrgId) -> ApiResult<()> {
        let id: Option<VisitorId> = self.visitor_id.as_ref().and_then(|id| id.parse().ok());
        if let Some(id) = id {
            state.backends.files.remove_visitor(org, &id).await?;
        }
        Ok(())
    }
}

impl RequestBody for ErasedVisitor {
    /// Parses the visitor; blank texts count as absent.
    fn from_fields(mut fields: JsonObject) -> ApiResult<Self> {
        let is_blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
        fields.retain(|_, value| !is_blank(value));
        for name in ["visitorId", "visitorEmail"] {
            let text = fields::optional_text(&fields, name)?.unwrap_or_default();
            fields::check_bytes(name, text, VISITOR_BYTES_MAX)?;
        }
        let visitor: Self = parse_fields(fields)?;
        if visitor.visitor_id.is_none() && visitor.visitor_email.is_none() {
            let rule = "or visitorEmail must say whose conversations are erased";
            return Err(ApiError::field("visitorId", rule));
        }
        Ok(visitor)
    }
}

impl ErasedVisitor {
    fn digest(&self, admin: &Admin<ActOnConversations>) -> VisitorDigest {
        let (id, email) = (self.visitor_id.as_deref(), self.visitor_email.as_deref());
        VisitorDigest::from_identifiers(&admin.state.secret, admin.org(), id, email)
    }

    /// Returns whether a conversation has the visitor's id or address, also in its lead.
    fn matches(&self, conversation: &Conversation) -> bool {
        let value_of = |key: &str| conversation.metadata.get(key).and_then(Value::as_str);
        let has_id = |id: &str| value_of("visitorId") == Some(id);
        let lead = leads::values_of(&conversation.metadata);
        let addresses: Vec<_> = value_of("visitorEmail").into_iter().chain(lead).collect();
        let has_email = |email: &str| addresses.iter().any(|it| is_same_address(it, email));
        self.visitor_id.as_deref().is_some_and(has_id)
            || self.visitor_email.as_deref().is_some_and(has_email)
    }
}
