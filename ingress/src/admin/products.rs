//! `/api/admin/organizations/{org}/agents/{id}/products`: what an agent may show. An upload replaces all of it or nothing;
//! it is read as it arrives, so that neither its size nor its speed costs memory.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    body::Body,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use switchboard_backends::{
    catalog::{CatalogEntry, EntryKind},
    products::{
        FeedRejections, ProductSource, ProductsStatus, PublishedProducts,
        config::ProductsConfig,
        feed::{FeedError, FeedReader},
        writer::ProductsWriter,
    },
};
use switchboard_schemas::{
    agent::{Agent, FeedFormat},
    audit::AuditAction,
    time::Timestamp,
};

use super::{
    administrator::{Action, Administrator},
    things::{find, not_found, organization},
};
use crate::{
    audit::{AuditChange, differences},
    http::{ApiError, ApiResult, ErrorCode},
    state::AppState,
};

/// Organization and agent, as a path names them.
pub(super) type Names = Path<(String, String)>;

/// Media types of uploads, and how each is read.
const MEDIA_TYPES: [(&str, FeedFormat); 8] = [
    ("text/csv", FeedFormat::Csv),
    ("text/tab-separated-values", FeedFormat::Csv),
    ("application/json", FeedFormat::Json),
    ("application/x-ndjson", FeedFormat::Json),
    ("application/jsonl", FeedFormat::Json),
    ("text/plain", FeedFormat::Auto),
    ("application/octet-stream", FeedFormat::Auto),
    // What curl says of a file unless it is told otherwise.
    ("application/x-www-form-urlencoded", FeedFormat::Auto),
];

/// What is known of an agent's products.
pub(super) async fn status(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(names): Names,
) -> ApiResult<Response> {
    let agent = agent(&state, &administrator, &names, Action::ReadConfiguration).await?;
    let status = state
        .backends
        .products
        .status(&agent.org_id, &agent.id)
        .await?;
    Ok(Json(view(&agent, &status)).into_response())
}

/// Replaces the products by those of the body.
pub(super) async fn upload(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(names): Names,
    request: Request,
) -> ApiResult<Response> {
    let agent = agent(&state, &administrator, &names, Action::Configure).await?;
    refuse_beside_feed(&agent)?;
    let (parts, body) = request.into_parts();
    let config = &state.config.products;
    let format = format_of(&parts.headers)?;
    refuse_announced_size(&parts.headers, config)?;
    let products = Arc::clone(&state.backends.products);
    let mut writer =
        ProductsWriter::begin(products, agent.org_id.clone(), agent.id.clone()).await?;
    let timeout = Duration::from_millis(config.upload_timeout_ms);
    let late = ApiError::uncoded(
        StatusCode::REQUEST_TIMEOUT,
        "the products did not arrive in time",
    );
    let read = tokio::time::timeout(
        timeout,
        read(
            body,
            FeedReader::new(format, config.products_max),
            &mut writer,
            config,
        ),
    );
    match read.await.unwrap_or(Err(late)) {
        Ok(rejected) => {
            let before = state
                .backends
                .products
                .status(&agent.org_id, &agent.id)
                .await?;
            let kept = writer.publish(ProductSource::Upload, rejected).await?;
            let after = ProductsStatus {
                kept: Some(kept.clone()),
                ..before.clone()
            };
            record(&administrator, &state, &agent, &before, &after).await;
            Ok(Json(kept_view(&agent, &kept)).into_response())
        }
        Err(error) => {
            writer.discard().await;
            Err(error)
        }
    }
}

/// Removes all products that are kept; those that the agent's own document names stay.
pub(super) async fn remove(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(names): Names,
) -> ApiResult<StatusCode> {
    let agent = agent(&state, &administrator, &names, Action::Configure).await?;
    refuse_beside_feed(&agent)?;
    let before = state
        .backends
        .products
        .status(&agent.org_id, &agent.id)
        .await?;
    state
        .backends
        .products
        .remove(&agent.org_id, &agent.id)
        .await?;
    record(
        &administrator,
        &state,
        &agent,
        &before,
        &ProductsStatus::default(),
    )
    .await;
    Ok(StatusCode::NO_CONTENT)
}

/// Asks that the agent's feed be fetched now.
pub(super) async fn refresh(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(names): Names,
) -> ApiResult<Response> {
    let agent = agent(&state, &administrator, &names, Action::Configure).await?;
    if agent.settings.ecommerce.feed.is_none() {
        return Err(
            ApiError::new(ErrorCode::Conflict, "the agent has no feed").param("ecommerce.feed")
        );
    }
    let before = state
        .backends
        .products
        .status(&agent.org_id, &agent.id)
        .await?;
    state
        .backends
        .products
        .ask_refresh(&agent.org_id, &agent.id, Timestamp::now())
        .await?;
    let status = state
        .backends
        .products
        .status(&agent.org_id, &agent.id)
        .await?;
    record(&administrator, &state, &agent, &before, &status).await;
    Ok((StatusCode::ACCEPTED, Json(view(&agent, &status))).into_response())
}

/// The agent that a path names, for one who may do this with it.
pub(super) async fn agent(
    state: &AppState,
    administrator: &Administrator,
    (org, id): &(String, String),
    action: Action,
) -> ApiResult<Agent> {
    let organization = organization(state, administrator, org, action).await?;
    match find(state, &organization.id, EntryKind::Agent, id)
        .await?
        .entry
    {
        CatalogEntry::Agent(agent) => Ok(*agent),
        _ => Err(not_found(EntryKind::Agent.name())),
    }
}

/// The next fetch of a feed would undo whatever is done by hand.
fn refuse_beside_feed(agent: &Agent) -> ApiResult<()> {
    if agent.settings.ecommerce.feed.is_none() {
        return Ok(());
    }
    let detail = "the agent's products come from its feed; take ecommerce.feed away first";
    Err(ApiError::new(ErrorCode::Conflict, detail).param("ecommerce.feed"))
}

fn format_of(headers: &HeaderMap) -> ApiResult<FeedFormat> {
    let unsupported = |detail| Err(ApiError::new(ErrorCode::UnsupportedMediaType, detail));
    // A compressed body could unfold to any size.
    if headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return unsupported("compressed bodies are not taken");
    }
    let Some(media_type) = headers.get(header::CONTENT_TYPE) else {
        return Ok(FeedFormat::Auto);
    };
    let essence = media_type
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    let format = MEDIA_TYPES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(essence))
        .map(|(_, format)| *format);
    format.map_or_else(|| unsupported("the body must be CSV or JSON"), Ok)
}

fn refuse_announced_size(headers: &HeaderMap, config: &ProductsConfig) -> ApiResult<()> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > config.bytes_max) {
        Err(too_large(config))
    } else {
        Ok(())
    }
}

async fn read(
    mut body: Body,
    mut reader: FeedReader,
    writer: &mut ProductsWriter,
    config: &ProductsConfig,
) -> ApiResult<FeedRejections> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| ApiError::new(ErrorCode::InvalidRequestData, "the body broke off"))?;
        let piece: Bytes = frame.into_data().unwrap_or_default();
        bytes += piece.len() as u64;
        if bytes > config.bytes_max {
            return Err(too_large(config));
        }
        for product in reader.push(&piece)? {
            writer.push(&product).await?;
        }
    }
    let (rest, rejected) = reader.finish()?;
    for product in rest {
        writer.push(&product).await?;
    }
    Ok(rejected)
}

fn too_large(config: &ProductsConfig) -> ApiError {
    let details = json!({ "max": config.bytes_max });
    ApiError::new(
        ErrorCode::PayloadTooLarge,
        "the products have too many bytes",
    )
    .details(details)
}

impl From<FeedError> for ApiError {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::TooMany { max } => Self::new(ErrorCode::PayloadTooLarge, error.to_string())
                .details(json!({ "max": max })),
            FeedError::BrokenOff { .. }
            | FeedError::RowTooLarge { .. }
            | FeedError::Unreadable(_)
            | FeedError::Empty
            | FeedError::NoProducts { .. } => {
                Self::new(ErrorCode::InvalidRequestData, error.to_string())
            }
        }
    }
}

/// Writes into the audit log what became of an agent's products, as a change of the agent.
async fn record(
    administrator: &Administrator,
    state: &AppState,
    agent: &Agent,
    before: &ProductsStatus,
    after: &ProductsStatus,
) {
    let (before, after) = (compared(before), compared(after));
    let change = AuditChange {
        org: &agent.org_id,
        kind: EntryKind::Agent.name(),
        subject: agent.id.as_str(),
        action: AuditAction::Update,
        fields: differences(before.as_object(), after.as_object()),
    };
    administrator.record(state, change).await;
}

fn compared(status: &ProductsStatus) -> Value {
    let kept = status.kept.as_ref();
    json!({ "products": {
        "count": kept.map_or(0, |kept| kept.count),
        "version": kept.map(|kept| &kept.version),
        "refreshAskedAt": status.asked_at,
    } })
}

fn view(agent: &Agent, status: &ProductsStatus) -> Value {
    let settings = &agent.settings.ecommerce;
    let feed = settings.feed.as_ref().map(|feed| {
        // What is known of another address says nothing of this one.
        let last = status.refresh.as_ref().filter(|refresh| refresh.url == feed.url);
        json!({
            "url": feed.url,
            "everyMinutes": feed.every_minutes,
            "lastAttemptAt": last.map(|refresh| refresh.attempted_at),
            "lastSuccessAt": last.and_then(|refresh| refresh.succeeded_at),
            "error": last.and_then(|refresh| refresh.error.clone()),
            "pending": last.is_none_or(|refresh| status.asked_at.is_some_and(|asked| asked > refresh.attempted_at)),
        })
    });
    json!({
        "agentId": agent.id,
        "shown": settings.enabled,
        "named": settings.products.len(),
        "kept": status.kept.as_ref().map(|kept| kept_view(agent, kept)),
        "feed": feed,
    })
}

/// What is kept, and whether visitors see it: an upload that nobody is shown should not look like a success.
fn kept_view(agent: &Agent, kept: &PublishedProducts) -> Value {
    json!({
        "version": kept.version,
        "shown": agent.settings.ecommerce.enabled,
        "source": kept.source,
        "count": kept.count,
        "bytes": kept.bytes,
        "storedAt": kept.stored_at,
        "rejected": kept.rejected,
    })
}
