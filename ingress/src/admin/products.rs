//! Products of an agent. An upload replaces all of them or none. Its bytes are kept in a file until
//! all have arrived, so that memory does not depend on its size or speed.

use std::time::Duration;

use axum::{Json, body::Body, extract::Query};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_backends::{
    catalog::EntryKind,
    products::{
        AttributeColumn, FeedRefresh, ProductSource, ProductsStatus, ProductsVersion,
        PublishedProducts, ReportedRows,
        config::ProductsConfig,
        feed::{FeedError, FeedFile, read_products},
        replacement::{ReplacementConsent, ReplacementRisk},
        writer::ProductsWriter,
    },
};
use switchboard_schemas::{
    agent::{Agent, FeedFormat, ProductFeed},
    audit::AuditAction,
    catalog_product::CatalogProduct,
    ids::AgentId,
    time::Timestamp,
};
use utoipa::{IntoParams, ToSchema};

use super::{
    authorization::Admin,
    bodies::ProductFile,
    pages::parse_parameter,
    permissions::{Configure, ReadConfiguration},
    responses::{ConflictingJson, JsonResponse, NoContent},
};
use crate::{
    audit::{AuditChange, differences},
    http::{ApiError, ApiResult, ErrorCode, body},
};

/// The number of products in a preview.
const PREVIEW_PRODUCTS: usize = 10;

/// The consent to a replacement.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct UploadConfirmation {
    /// `true` to replace the products although most of them would be lost or many rows are not
    /// products; without it, such a replacement is refused.
    #[param(value_type = Option<bool>)]
    confirm: Option<String>,
}

impl UploadConfirmation {
    fn is_given(&self) -> ApiResult<bool> {
        let rule = "must be true or false";
        let given = parse_parameter("confirm", self.confirm.as_deref(), rule)?;
        Ok(given.unwrap_or(false))
    }
}

/// The products to restore.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct RestoredVersion {
    /// A version of `restorable`; without it, the products before the last replacement.
    #[param(value_type = Option<String>)]
    version: Option<ProductsVersion>,
}

/// The result of an upload without the upload.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProductsPreview {
    /// The number of products.
    count: u64,
    /// The number of stored products that would be replaced.
    current_count: u64,
    /// The first products.
    first: Vec<CatalogProduct>,
    /// The rows that are not products.
    rejected: ReportedRows,
    /// The rows of products that the shop does not show.
    left_out: ReportedRows,
    /// The rows of which a value was left out.
    warnings: ReportedRows,
    /// The first 20 columns that become attributes, those that are probably misspelled first.
    attribute_columns: Vec<AttributeColumn>,
    /// The reason why an upload needs `confirm=true`; `null` if it needs none.
    #[schema(required)]
    risk: Option<String>,
}

/// Products before a replacement.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PreviousProductsView {
    /// The version.
    #[schema(value_type = String)]
    version: ProductsVersion,
    /// The number of products.
    count: u64,
    /// The time at which they were stored.
    stored_at: Timestamp,
}

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
    /// The rows that are not products.
    rejected: ReportedRows,
    /// The rows of products that the shop does not show.
    left_out: ReportedRows,
    /// The rows of which a value was left out.
    warnings: ReportedRows,
    /// The first 20 columns that became attributes, those that are probably misspelled first.
    attribute_columns: Vec<AttributeColumn>,
    /// The products before the last replacement, which can be restored; `null` without any.
    #[schema(required)]
    previous: Option<PreviousProductsView>,
    /// The products before the last five replacements, which can be restored, newest first.
    restorable: Vec<PreviousProductsView>,
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
    /// `true` if the last fetch kept the products until a refresh with `confirm=true`.
    needs_confirmation: bool,
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
    Query(confirmation): Query<UploadConfirmation>,
    file: ProductFile,
) -> ApiResult<Json<StoredProductsView>> {
    let (config, agent) = (&admin.state.config.products, &admin.subject);
    let confirm = confirmation.is_given()?;
    refuse_beside_feed(agent)?;
    let feed = receive(&headers, file, config).await?;
    let products = &admin.state.backends.products;
    let (org, id) = (agent.org_id.clone(), agent.id.clone());
    let mut writer = ProductsWriter::begin(products.clone(), org, id).await?;
    let format = (FeedFormat::Auto, config.products_max);
    let replaced = async {
        let read = read_products::<ApiError>(feed, format, Some(&mut writer), 0).await?;
        let before = products.read_status(&agent.org_id, &agent.id).await?;
        match ReplacementRisk::of_upload(before.kept.as_ref(), &read) {
            Some(risk) if !confirm => Err(unconfirmed(&risk)),
            _ => Ok((read, before)),
        }
    };
    match replaced.await {
        Ok((read, before)) => {
            let kept = writer.publish(ProductSource::Upload, read.report).await?;
            record_replacement(&admin, before, &kept).await;
            Ok(Json(StoredProductsView::new(agent, &kept)))
        }
        Err(error) => {
            writer.discard().await;
            Err(error)
        }
    }
}

/// Reads the products of the body and changes nothing.
pub(super) async fn preview(
    admin: Admin<Configure, Agent>,
    headers: HeaderMap,
    file: ProductFile,
) -> ApiResult<Json<ProductsPreview>> {
    let (config, agent) = (&admin.state.config.products, &admin.subject);
    let feed = receive(&headers, file, config).await?;
    let format = (FeedFormat::Auto, config.products_max);
    let read = read_products::<ApiError>(feed, format, None, PREVIEW_PRODUCTS).await?;
    let products = &admin.state.backends.products;
    let kept = products.read_status(&agent.org_id, &agent.id).await?.kept;
    let risk = ReplacementRisk::of_upload(kept.as_ref(), &read);
    let now = Timestamp::now();
    let first = read.first.into_iter();
    Ok(Json(ProductsPreview {
        count: read.count,
        current_count: kept.map_or(0, |kept| kept.count),
        first: first.map(|product| product.priced_at(now)).collect(),
        rejected: read.report.rejected,
        left_out: read.report.left_out,
        warnings: read.report.warnings,
        attribute_columns: read.report.attribute_columns,
        risk: risk.map(|risk| risk.to_string()),
    }))
}

/// Restores the products before a replacement; the current ones can be restored afterwards.
pub(super) async fn restore(
    admin: Admin<Configure, Agent>,
    Query(restored): Query<RestoredVersion>,
) -> ApiResult<ConflictingJson<StoredProductsView>> {
    let (products, agent) = (&admin.state.backends.products, &admin.subject);
    let before = products.read_status(&agent.org_id, &agent.id).await?;
    let version = restored.version.as_ref();
    let restored = products.restore_version(&agent.org_id, &agent.id, version);
    let kept = restored.await?.ok_or_else(|| match version {
        None => ApiError::new(
            ErrorCode::Conflict,
            "there are no previous products to restore",
        ),
        Some(_) => ApiError::new(
            ErrorCode::Conflict,
            "there is no such version to restore; it must be one of restorable",
        )
        .param("version"),
    })?;
    record_replacement(&admin, before, &kept).await;
    Ok(ConflictingJson(StoredProductsView::new(agent, &kept)))
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
    Query(confirmation): Query<UploadConfirmation>,
) -> ApiResult<JsonResponse<202, ProductsView>> {
    let (products, agent) = (&admin.state.backends.products, &admin.subject);
    let confirm = confirmation.is_given()?;
    let Some(feed) = &agent.settings.ecommerce.feed else {
        let error = ApiError::new(ErrorCode::Conflict, "the agent has no feed");
        return Err(error.param("ecommerce.feed"));
    };
    let (org, id, now) = (&agent.org_id, &agent.id, Timestamp::now());
    let before = products.read_status(org, id).await?;
    // Only what somebody was asked for is confirmed, not whatever a later fetch brings.
    let asked = before.refresh.as_ref().filter(|last| {
        confirm && last.url == feed.url && last.consent == ReplacementConsent::Needed
    });
    if let Some(last) = asked {
        let confirmed = FeedRefresh {
            consent: ReplacementConsent::Given,
            ..last.clone()
        };
        products.record_refresh(org, id, &confirmed).await?;
    }
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

/// Receives a file. Its format is recognized from its content, because browsers and shops name
/// wrong media types.
async fn receive(
    headers: &HeaderMap,
    file: ProductFile,
    config: &ProductsConfig,
) -> ApiResult<FeedFile> {
    let media_type = body::media_type(headers)?.unwrap_or_default();
    if media_type.starts_with("multipart/") {
        let detail = "the body must be the product file itself, not a form";
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, detail));
    }
    let max = config.bytes_max;
    if let Some(bytes) = body::announced_bytes(headers).filter(|bytes| *bytes > max) {
        return Err(FeedError::TooLarge { bytes, max }.into());
    }
    let timeout = Duration::from_millis(config.upload_timeout_ms);
    let received = tokio::time::timeout(timeout, receive_bytes(file.0, max)).await;
    received.unwrap_or_else(|_| {
        let detail = "the products did not arrive in time";
        Err(ApiError::uncoded(StatusCode::REQUEST_TIMEOUT, detail))
    })
}

async fn receive_bytes(mut body: Body, bytes_max: u64) -> ApiResult<FeedFile> {
    let mut feed = FeedFile::new(bytes_max);
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| ApiError::new(ErrorCode::InvalidRequestData, "the body broke off"))?;
        feed.push(&frame.into_data().unwrap_or_default()).await?;
    }
    Ok(feed)
}

fn unconfirmed(risk: &ReplacementRisk) -> ApiError {
    let detail = format!(
        "nothing was replaced: the file needs a confirmation (confirm=true), because {risk}"
    );
    let details = match risk {
        ReplacementRisk::Shrinks { count, current } => {
            json!({ "count": count, "currentCount": current })
        }
        ReplacementRisk::Loses { warnings, rows } => {
            json!({ "warnings": warnings, "rows": rows })
        }
        ReplacementRisk::Rejects { rejected, rows } => {
            json!({ "rejected": rejected, "rows": rows })
        }
        ReplacementRisk::Hides { hidden, rows } => json!({ "leftOut": hidden, "rows": rows }),
        ReplacementRisk::LacksValues {
            without,
            count,
            current,
            ..
        } => json!({ "without": without, "count": count, "currentCount": current }),
    };
    ApiError::new(ErrorCode::Conflict, detail)
        .param("confirm")
        .details(details)
}

impl From<FeedError> for ApiError {
    fn from(error: FeedError) -> Self {
        let code = match error {
            FeedError::TooMany { max } | FeedError::TooLarge { max, .. } => {
                return Self::new(ErrorCode::PayloadTooLarge, error.to_string())
                    .details(json!({ "max": max }));
            }
            FeedError::Storage(_) | FeedError::Canceled => return Self::internal(&error),
            FeedError::Unsupported { .. } => ErrorCode::UnsupportedMediaType,
            _ => ErrorCode::InvalidRequestData,
        };
        Self::new(code, error.to_string())
    }
}

async fn record_replacement(
    admin: &Admin<Configure, Agent>,
    before: ProductsStatus,
    kept: &PublishedProducts,
) {
    let after = ProductsStatus {
        kept: Some(kept.clone()),
        ..before.clone()
    };
    record(admin, &before, &after).await;
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
            needs_confirmation: last.is_some_and(|last| last.consent == ReplacementConsent::Needed),
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
            left_out: kept.left_out.clone(),
            warnings: kept.warnings.clone(),
            attribute_columns: kept.attribute_columns.clone(),
            previous: kept.previous.as_deref().map(PreviousProductsView::new),
            restorable: kept
                .versions()
                .skip(1)
                .map(PreviousProductsView::new)
                .collect(),
        }
    }
}

impl PreviousProductsView {
    fn new(kept: &PublishedProducts) -> Self {
        Self {
            version: kept.version.clone(),
            count: kept.count,
            stored_at: kept.stored_at,
        }
    }
}
