//! `/api/admin/organizations/{org}/erasures`: everything of one visitor is deleted, and a receipt stays.
//!
//! Who asks says whom with every request, because the receipt keeps digests only. A request works for a bounded time and
//! leaves its place in the receipt; whoever asks again with the same visitor goes on there, on any process, until the
//! receipt says that it is finished.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{Path, Query, Request, State},
    response::{IntoResponse, Response},
};
use futures::TryStreamExt;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_backends::store::listing::{ListCursor, ListQuery};
use switchboard_schemas::{
    audit::{AuditAction, AuditActor, FieldChange},
    conversation::Conversation,
    erasure::{Erasure, ErasureCursor, ErasureRequester, VisitorDigest},
    ids::{ErasureId, EventId, OrgId, RequestId},
    organization::Organization,
    time::Timestamp,
};
use tokio::time::Instant;

use super::{
    deletion::{Progress, delete},
    filter::{LOOKED_AT_MAX, is_address},
    read_all,
};
use crate::{
    admin::{
        administrator::{Action, Administrator},
        page::limit,
        things::{not_found, organization},
    },
    audit::AuditChange,
    http::{
        ApiError, ApiResult,
        body::{self, BodyLimits},
        fields,
    },
    state::AppState,
};

/// How long one request works, at least; the conversation that it is at is brought to its end.
const WORKS_FOR: Duration = Duration::from_secs(10);
/// Longest name of a visitor.
const VISITOR_BYTES_MAX: usize = 1024;

/// Whom an erasure is about, as the request says it.
struct Visitor {
    id: Option<String>,
    email: Option<String>,
}

/// The query of a list.
#[derive(Debug, Default, Deserialize)]
pub(in crate::admin) struct Wanted {
    limit: Option<String>,
    cursor: Option<String>,
}

/// Begins an erasure.
pub(in crate::admin) async fn begin(
    State(state): State<AppState>,
    administrator: Administrator,
    Extension(request_id): Extension<RequestId>,
    Path(org): Path<String>,
    request: Request,
) -> ApiResult<Response> {
    let Organization { id: org, .. } =
        organization(&state, &administrator, &org, Action::ActOnConversations).await?;
    let visitor = Visitor::read(&state, request).await?;
    let erasure = Erasure {
        id: ErasureId::now(),
        org_id: org.clone(),
        visitor: visitor.digest(&state, &org),
        by: match administrator.actor() {
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
    // The receipt is there before anything is gone.
    state.backends.store.put_erasure(&erasure).await?;
    record(&state, &administrator, &erasure, AuditAction::Create).await;
    let erasure = work(&state, erasure, &visitor, &request_id).await?;
    Ok((StatusCode::CREATED, Json(shown(&erasure))).into_response())
}

/// Goes on with one.
pub(in crate::admin) async fn go_on(
    State(state): State<AppState>,
    administrator: Administrator,
    Extension(request_id): Extension<RequestId>,
    Path((org, id)): Path<(String, String)>,
    request: Request,
) -> ApiResult<Response> {
    let Organization { id: org, .. } =
        organization(&state, &administrator, &org, Action::ActOnConversations).await?;
    let erasure = find(&state, &org, &id).await?;
    let visitor = Visitor::read(&state, request).await?;
    if visitor.digest(&state, &org) != erasure.visitor {
        return Err(ApiError::field(
            "visitorId",
            "and visitorEmail must be those with which this erasure began",
        ));
    }
    let before = erasure.steps;
    let erasure = work(&state, erasure, &visitor, &request_id).await?;
    if erasure.steps > before {
        record(&state, &administrator, &erasure, AuditAction::Update).await;
    }
    Ok(Json(shown(&erasure)).into_response())
}

/// One receipt.
pub(in crate::admin) async fn get(
    State(state): State<AppState>,
    administrator: Administrator,
    Path((org, id)): Path<(String, String)>,
) -> ApiResult<Response> {
    let Organization { id: org, .. } =
        organization(&state, &administrator, &org, Action::ReadConversations).await?;
    Ok(Json(shown(&find(&state, &org, &id).await?)).into_response())
}

/// Receipts, latest first.
pub(in crate::admin) async fn list(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    Query(wanted): Query<Wanted>,
) -> ApiResult<Response> {
    let Organization { id: org, .. } =
        organization(&state, &administrator, &org, Action::ReadConversations).await?;
    let before = wanted
        .cursor
        .as_deref()
        .map(str::parse::<ErasureId>)
        .transpose();
    let before = before
        .map_err(|_| ApiError::field("cursor", "must be the nextCursor of an earlier page"))?;
    let page = limit(wanted.limit.as_deref());
    let found = state
        .backends
        .store
        .erasures(
            &org,
            before.as_ref(),
            u32::try_from(page).unwrap_or(u32::MAX),
        )
        .await?;
    let next = found
        .last()
        .filter(|_| found.len() == page)
        .map(|last| &last.id);
    let items: Vec<Value> = found.iter().map(shown).collect();
    Ok(Json(json!({ "items": items, "limit": page, "nextCursor": next })).into_response())
}

async fn find(state: &AppState, org: &OrgId, id: &str) -> ApiResult<Erasure> {
    let id: ErasureId = id.parse().map_err(|_| not_found("erasure"))?;
    state
        .backends
        .store
        .erasure(org, &id)
        .await?
        .ok_or_else(|| not_found("erasure"))
}

/// Walks on for a while; what was done is kept, also when something failed behind it.
async fn work(
    state: &AppState,
    erasure: Erasure,
    visitor: &Visitor,
    request: &RequestId,
) -> ApiResult<Erasure> {
    if erasure.finished_at.is_some() {
        return Ok(erasure);
    }
    let (mut after, until) = (erasure, Instant::now() + WORKS_FOR);
    after.steps += 1;
    let mut outcome = Ok(());
    while outcome.is_ok() && after.finished_at.is_none() && Instant::now() < until {
        outcome = step(state, &mut after, visitor, request, until).await;
    }
    state.backends.store.put_erasure(&after).await?;
    if outcome.is_err() {
        tracing::warn!(erasure.id = %after.id, "an erasure stopped before its end, and can be gone on with");
    }
    Ok(after)
}

/// Looks at a part of the list.
async fn step(
    state: &AppState,
    erasure: &mut Erasure,
    visitor: &Visitor,
    request: &RequestId,
    until: Instant,
) -> ApiResult<()> {
    let org = erasure.org_id.clone();
    let listed = state
        .backends
        .store
        .conversations(&org, &query(erasure))
        .await?;
    let is_last = listed.len() < LOOKED_AT_MAX as usize;
    let mut found = read_all(state, &org, listed);
    while let Some((listed, conversation)) = found.try_next().await? {
        if let Some(conversation) = conversation.filter(|conversation| visitor.is_of(conversation))
        {
            erase(state, erasure, &conversation, request).await?;
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
        (erasure.finished_at, erasure.place) = (Some(Timestamp::now()), None);
    }
    Ok(())
}

/// Deletes one conversation, under the same name however often it is tried.
async fn erase(
    state: &AppState,
    erasure: &mut Erasure,
    conversation: &Conversation,
    request: &RequestId,
) -> ApiResult<()> {
    let event = EventId::of(erasure.id.as_str(), conversation.id.as_str());
    if delete(state, conversation, event, request).await? == Progress::Accepted {
        return Err(ApiError::unavailable(
            "a conversation is not deleted yet; go on with the erasure in a moment",
        ));
    }
    erasure.conversations += 1;
    erasure.messages += conversation.message_count;
    Ok(())
}

fn query(erasure: &Erasure) -> ListQuery {
    let behind = match &erasure.place {
        Some(place) => ListCursor {
            began_at: place.began_at,
            id: place.id.clone(),
        },
        None => ListCursor {
            began_at: erasure.began_at,
            id: None,
        },
    };
    ListQuery {
        owner: None,
        since: None,
        behind: Some(behind),
        limit: LOOKED_AT_MAX,
    }
}

fn shown(erasure: &Erasure) -> Value {
    json!({
        "id": erasure.id,
        "state": if erasure.finished_at.is_some() { "finished" } else { "running" },
        "visitor": erasure.visitor,
        "by": erasure.by,
        "beganAt": erasure.began_at,
        "finishedAt": erasure.finished_at,
        "lookedAt": erasure.looked_at,
        "conversations": erasure.conversations,
        "messages": erasure.messages,
    })
}

async fn record(
    state: &AppState,
    administrator: &Administrator,
    erasure: &Erasure,
    action: AuditAction,
) {
    let fields = match action {
        AuditAction::Update => {
            vec![FieldChange {
                field: "steps".into(),
                before: None,
                after: Some(erasure.steps.into()),
            }]
        }
        _ => Vec::new(),
    };
    let change = AuditChange {
        org: &erasure.org_id,
        kind: "erasure",
        subject: erasure.id.as_str(),
        action,
        fields,
    };
    administrator.record(state, change).await;
}

impl Visitor {
    async fn read(state: &AppState, request: Request) -> ApiResult<Self> {
        let (parts, body) = request.into_parts();
        let body = body::read(&parts.headers, body, BodyLimits::admin(&state.config)).await?;
        let fields = body::parse_object(&body)?;
        let (id, email) = (
            named(&fields, "visitorId")?,
            named(&fields, "visitorEmail")?,
        );
        if id.is_none() && email.is_none() {
            return Err(ApiError::field(
                "visitorId",
                "or visitorEmail must say whose conversations are erased",
            ));
        }
        Ok(Self { id, email })
    }

    fn digest(&self, state: &AppState, org: &OrgId) -> VisitorDigest {
        VisitorDigest::of(
            &state.secret,
            org,
            self.id.as_deref(),
            self.email.as_deref(),
        )
    }

    /// Whether either name is theirs.
    fn is_of(&self, conversation: &Conversation) -> bool {
        let said = |key: &str| conversation.metadata.get(key).and_then(Value::as_str);
        self.id
            .as_deref()
            .is_some_and(|id| said("visitorId") == Some(id))
            || self
                .email
                .as_deref()
                .is_some_and(|email| said("visitorEmail").is_some_and(|it| is_address(it, email)))
    }
}

fn named(body: &Map<String, Value>, field: &'static str) -> ApiResult<Option<String>> {
    let text = fields::optional_text(body, field)?.filter(|text| !text.trim().is_empty());
    if let Some(text) = text {
        fields::check_bytes(field, text, VISITOR_BYTES_MAX)?;
    }
    Ok(text.map(str::to_owned))
}
