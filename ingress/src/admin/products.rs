//! Products of an agent. An upload replaces all of them or none. It is parsed as it arrives, so
//! that memory does not depend on its size or speed.

use std::time::Duration;

use axum::{Json, body::Body};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_backends::{
    catalog::EntryKind,
    products::{
        ProductSource, ProductsStatus, ProductsVersion, PublishedProducts, RejectedRows,
        config::ProductsConfig,
        feed::{FeedError, FeedReader},
        writer::ProductsWriter,
    },
};
use switchboard_schemas::{
    agent::{Agent, FeedFormat, ProductFeed},
    audit::AuditAction,
    ids::AgentId,
    time::Timestamp,
};
use utoipa::ToSchema;

use super::{
    authorization::Admin,
    bodies::ProductFile,
    permissions::{Configure, ReadConfiguration},
    responses::{JsonResponse, NoContent},
};
use crate::{
    audit::{AuditChange, differences},
    http::{ApiError, ApiResult, ErrorCode, body},
};

/// The media types of uploads and their formats.
const MEDIA_TYPES: [(&str, FeedFormat); 8] = [
    ("text/csv", FeedFormat::Csv),
    ("text/tab-separated-values", FeedFormat::Csv),
    ("application/json", FeedFormat::Json),
    ("application/x-ndjson", FeedFormat::Json),
    ("application/jsonl", FeedFormat::Json),
    ("text/plain", FeedFormat::Auto),
    ("application/octet-stream", FeedFormat::Auto),
    // The default of curl for a file.
    ("application/x-www-form-urlencoded", FeedFormat::Auto),
];

/// The products of an agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProductsView {
    /// The id of the agent.
    agent_id: AgentId,
    /// `true` if visitors see products.
    shown: bool,
    /// The number of products in the agent's settings.
    named: usize,
    /// The products of the last upload or fetch; `null` without one.
    #[schema(required)]
    kept: Option<StoredProductsView>,
    /// The feed of the agent; `null` without one.
    #[schema(required)]
    feed: Option<FeedView>,
}

/// A stored set of products.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredProductsView {
    /// The version, which changes with each upload or fetch.
    #[schema(value_type = String)]
    version: ProductsVersion,
    /// `true` if visitors see products, so that an upload to an agent that hides them is noticed.
    shown: bool,
    /// The origin of the products.
    source: ProductSource,
    /// The number of products.
    count: u64,
    /// The size of the products in the store, in bytes.
    bytes: u64,
    /// The time at which they were stored.
    stored_at: Timestamp,
    /// The rejected rows.
    rejected: RejectedRows,
}

/// The state of a feed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FeedView {
    /// The address of the feed.
    url: String,
    /// The interval of its fetches, in minutes.
    every_minutes: u32,
    /// The time of the last fetch of this address.
    #[schema(required)]
    last_attempt_at: Option<Timestamp>,
    /// The time of the last fetch that succeeded.
    #[schema(required)]
    last_success_at: Option<Timestamp>,
    /// The error of the last fetch.
    #[schema(required)]
    error: Option<String>,
    /// `true` if a fetch is due.
    pending: bool,
}

/// Reads the state of an agent's products.
pub(super) async fn read(admin: Admin<ReadConfiguration, Agent>) -> ApiResult<Json<ProductsView>> {
    let (products, agent) = (&admin.state.backends.products, &admin.subject);
    let status = products.read_status(&agent.org_id, &agent.id).await?;
    Ok(Json(ProductsView::new(agent, &status)))
}

/// Replaces the products with those of the body.
pub(super) async fn upload(
    admin: Admin<Configure, Agent>,
    headers: HeaderMap,
    file: ProductFile,
) -> ApiResult<Json<StoredProductsView>> {
    let (config, agent) = (&admin.state.config.products, &admin.subject);
    refuse_beside_feed(agent)?;
    let format = format_of(&headers)?;
    if body::announced_bytes(&headers).is_some_and(|bytes| bytes > config.bytes_max) {
        return Err(too_large(config));
    }
    let products = &admin.state.backends.products;
    let (org, id) = (agent.org_id.clone(), agent.id.clone());
    let mut writer = ProductsWriter::begin(products.clone(), org, id).await?;
    let reader = FeedReader::new(format, config.products_max);
    let read = read_upload(file.0, reader, &mut writer, config);
    let timeout = Duration::from_millis(config.upload_timeout_ms);
    let read = tokio::time::timeout(timeout, read).await;
    let detail = "the products did not arrive in time";
    match read.unwrap_or_else(|_| Err(ApiError::uncoded(StatusCode::REQUEST_TIMEOUT, detail))) {
        Ok(rejected) => {
            let before = products.read_status(&agent.org_id, &agent.id).await?;
            let kept = writer.publish(ProductSource::Upload, rejected).await?;
            let after = ProductsStatus {
                kept: Some(kept.clone()),
                ..before.clone()
            };
            record(&admin, &before, &after).await;
            Ok(Json(StoredProductsView::new(agent, &kept)))
        }
        Err(error) => {
            writer.discard().await;
            Err(error)
        }
    }
}

/// Deletes all stored products; those in the agent's settings stay.
pub(super) async fn delete(admin: Admin<Configure, Agent>) -> ApiResult<NoContent> {
    let (products, agent) = (&admin.state.backends.products, &admin.subject);
    refuse_beside_feed(agent)?;
    let before = products.read_status(&agent.org_id, &agent.id).await?;
    products.remove_products(&agent.org_id, &agent.id).await?;
    record(&admin, &before, &ProductsStatus::default()).await;
    Ok(NoContent)
}

/// Requests an immediate fetch of the agent's feed.
pub(super) async fn refresh(
    admin: Admin<Configure, Agent>,
) -> ApiResult<JsonResponse<202, ProductsView>> {
    let (products, agent) = (&admin.state.backends.products, &admin.subject);
    if agent.settings.ecommerce.feed.is_none() {
        let error = ApiError::new(ErrorCode::Conflict, "the agent has no feed");
        return Err(error.param("ecommerce.feed"));
    }
    let (org, id, now) = (&agent.org_id, &agent.id, Timestamp::now());
    let before = products.read_status(org, id).await?;
    products.request_refresh(org, id, now).await?;
    let status = products.read_status(org, id).await?;
    record(&admin, &before, &status).await;
    Ok(JsonResponse::new(ProductsView::new(agent, &status)))
}

/// Fails with 409 if the agent has a feed, whose next fetch would undo the change.
fn refuse_beside_feed(agent: &Agent) -> ApiResult<()> {
    if agent.settings.ecommerce.feed.is_none() {
        return Ok(());
    }
    let detail = "the agent's products come from its feed; remove ecommerce.feed first";
    Err(ApiError::new(ErrorCode::Conflict, detail).param("ecommerce.feed"))
}

fn format_of(headers: &HeaderMap) -> ApiResult<FeedFormat> {
    let Some(essence) = body::media_type(headers)? else {
        return Ok(FeedFormat::Auto);
    };
    let known = MEDIA_TYPES.iter().find(|(name, _)| *name == essence);
    let detail = "the body must be CSV or JSON";
    let error = || ApiError::new(ErrorCode::UnsupportedMediaType, detail);
    known.map(|(_, format)| *format).ok_or_else(error)
}

async fn read_upload(
    mut body: Body,
    mut reader: FeedReader,
    writer: &mut ProductsWriter,
    config: &ProductsConfig,
) -> ApiResult<RejectedRows> {
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
    let detail = "the products are too large";
    let details = json!({ "max": config.bytes_max });
    ApiError::new(ErrorCode::PayloadTooLarge, detail).details(details)
}

impl From<FeedError> for ApiError {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::TooMany { max } => Self::new(ErrorCode::PayloadTooLarge, error.to_string())
                .details(json!({ "max": max })),
            error => Self::new(ErrorCode::InvalidRequestData, error.to_string()),
        }
    }
}

/// Records a change of an agent's products in the audit log, as a change of the agent.
async fn record(admin: &Admin<Configure, Agent>, before: &ProductsStatus, after: &ProductsStatus) {
    let (before, after) = (compared(before), compared(after));
    let change = AuditChange {
        org: &admin.subject.org_id,
        kind: EntryKind::Agent.name(),
        subject: admin.subject.id.as_str(),
        action: AuditAction::Update,
        fields: differences(before.as_object(), after.as_object()),
    };
    admin.administrator.record(&admin.state, change).await;
}

fn compared(status: &ProductsStatus) -> Value {
    let kept = status.kept.as_ref();
    json!({ "products": {
        "count": kept.map_or(0, |kept| kept.count),
        "version": kept.map(|kept| &kept.version),
        "refreshAskedAt": status.asked_at,
    } })
}

impl ProductsView {
    fn new(agent: &Agent, status: &ProductsStatus) -> Self {
        let (settings, kept) = (&agent.settings.ecommerce, status.kept.as_ref());
        let feed = settings.feed.as_ref();
        Self {
            agent_id: agent.id.clone(),
            shown: settings.enabled,
            named: settings.products.len(),
            kept: kept.map(|kept| StoredProductsView::new(agent, kept)),
            feed: feed.map(|feed| FeedView::new(feed, status)),
        }
    }
}

impl FeedView {
    fn new(feed: &ProductFeed, status: &ProductsStatus) -> Self {
        // The last fetch of an earlier address says nothing about this one.
        let last = status.refresh.as_ref().filter(|last| last.url == feed.url);
        Self {
            url: feed.url.clone(),
            every_minutes: feed.every_minutes,
            last_attempt_at: last.map(|last| last.attempted_at),
            last_success_at: last.and_then(|last| last.succeeded_at),
            error: last.and_then(|last| last.error.clone()),
            pending: last.is_none_or(|last| status.asked_at > Some(last.attempted_at)),
        }
    }
}

impl StoredProductsView {
    fn new(agent: &Agent, kept: &PublishedProducts) -> Self {
        Self {
            version: kept.version.clone(),
            shown: agent.settings.ecommerce.enabled,
            source: kept.source.clone(),
            count: kept.count,
            bytes: kept.bytes,
            stored_at: kept.stored_at,
            rejected: kept.rejected.clone(),
        }
    }
}
