//! Exports of conversations as JSON lines or CSV, with the filters of the list. The file is written
//! while it is sent, one page of messages at a time, so that memory does not depend on its length.
//! A failure aborts the transfer, so that clients notice an incomplete file.

use std::io;

use axum::{
    body::Body,
    extract::Query,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{SinkExt, Stream, StreamExt, TryStreamExt, channel::mpsc, stream};
use http::header;
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_backends::store::listing::{ListCursor, ListQuery};
use switchboard_schemas::{
    audit::{AuditAction, FieldChange},
    conversation::{Conversation, Message},
    ids::{ConversationId, OrgId},
    time::Timestamp,
};

use super::{
    filter::{ConversationFilter, ConversationQuery, ExportFormat},
    read_all,
    view::{AuthorView, ConversationView, MessageView},
    with_failures,
};
use crate::{
    admin::{
        authorization::Admin, csv, pages::CursorQuery, permissions::ActOnConversations,
        responses::FileDownload,
    },
    http::{ApiError, ApiResult},
    state::AppState,
};

/// The most messages of one part of the file.
const PART_MESSAGES: u32 = 100;
/// The columns of CSV.
const COLUMNS: [&str; 21] = [
    "conversationId",
    "agentId",
    "teamId",
    "sessionId",
    "visitorId",
    "visitorEmail",
    "visitorName",
    "rating",
    "feedback",
    "messageId",
    "timestamp",
    "role",
    "agentName",
    "status",
    "model",
    "promptTokens",
    "completionTokens",
    "responseTime",
    "routingReason",
    "content",
    "attachments",
];

/// The writer of an export.
struct ConversationExporter {
    state: AppState,
    org: OrgId,
    format: ExportFormat,
    filter: ConversationFilter,
    parts: mpsc::Sender<ApiResult<Bytes>>,
}

#[derive(Serialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum ExportLine {
    Conversation(ConversationView),
    Message {
        conversation_id: ConversationId,
        #[serde(flatten)]
        message: MessageView,
    },
}

/// Exports the conversations that pass the filters of the list.
pub(in crate::admin) async fn export(
    admin: Admin<ActOnConversations>,
    Query(query): Query<ConversationQuery>,
    Query(page): Query<CursorQuery>,
) -> ApiResult<FileDownload> {
    let format = ExportFormat::parse(query.format.as_deref())?;
    let (filter, list_query) = (query.filter()?, query.list_query(&page)?);
    let (parts, written) = mpsc::channel(0);
    let exporter = ConversationExporter {
        state: admin.state.clone(),
        org: admin.org().clone(),
        format,
        filter,
        parts,
    };
    // Written while it is polled, so that it stops with the transfer.
    let writing = stream::once(exporter.write(list_query));
    let writing = writing.filter_map(async |outcome| outcome.err().map(Err));
    let file = stream::once(async move { Ok(first_bytes(format)) });
    let file = file.chain(stream::select(written, writing));
    let file = send_file(&admin, "conversations", format, file).await;
    Ok(FileDownload(file))
}

/// Records an export of this kind in the audit log, and returns the response that sends `file`
/// while it is written. A failure aborts the transfer.
pub(super) async fn send_file<P>(
    admin: &Admin<P>,
    kind: &str,
    format: ExportFormat,
    file: impl Stream<Item = ApiResult<Bytes>> + Send + 'static,
) -> Response {
    // The filters are not recorded, because they can name a visitor.
    let fields = vec![FieldChange {
        field: "format".into(),
        before: None,
        after: Some(format.name().into()),
    }];
    let subject = (kind, admin.org().as_str());
    admin.record(subject, AuditAction::Export, fields).await;
    let day = &Timestamp::now().to_string()[..10];
    let name = format!("{kind}-{day}.{}", format.name());
    let headers = [
        (header::CONTENT_TYPE, format.media_type().to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        ),
        (header::CACHE_CONTROL, "no-store, no-transform".to_owned()),
    ];
    let body = Body::from_stream(file.map_err(|error: ApiError| {
        tracing::warn!(detail = %error.into_parts().detail, "export aborted");
        io::Error::other("the export was aborted")
    }));
    (headers, body).into_response()
}

/// Returns the bytes before the first conversation.
fn first_bytes(format: ExportFormat) -> Bytes {
    let mut out = String::new();
    if format == ExportFormat::Csv {
        out.push_str(csv::BYTE_ORDER_MARK);
        csv::push_row(&mut out, COLUMNS);
    }
    out.into()
}

impl ConversationExporter {
    async fn write(mut self, mut query: ListQuery) -> ApiResult<()> {
        let (state, org) = (self.state.clone(), self.org.clone());
        loop {
            let listed = state.backends.store.conversations(&org, &query).await?;
            let is_last = listed.len() < query.limit as usize;
            if let Some(last) = listed.last() {
                query.behind = Some(ListCursor {
                    began_at: last.began_at,
                    id: Some(last.id.clone()),
                });
            }
            let mut found = read_all(&state, &org, listed);
            while let Some((_, conversation)) = found.try_next().await? {
                if let Some(conversation) = conversation
                    && self.filter.find(&state, &conversation).await?.is_some()
                {
                    self.write_conversation(&conversation).await?;
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn write_conversation(&mut self, conversation: &Conversation) -> ApiResult<()> {
        let mut from = 0;
        loop {
            let (store, id) = (&self.state.backends.store, &conversation.id);
            let messages = store.messages(&self.org, id, from, PART_MESSAGES).await?;
            // The end of the conversation, or it was deleted meanwhile.
            if messages.is_empty() {
                return Ok(());
            }
            let shown = with_failures(&self.state, conversation, &messages).await?;
            let part = self.format_messages(conversation, from, &messages, shown);
            let sent = self.parts.send(Ok(part)).await;
            sent.map_err(|error| ApiError::internal(&error))?;
            from += messages.len() as u64;
        }
    }

    fn format_messages(
        &self,
        conversation: &Conversation,
        from: u64,
        messages: &[Message],
        shown: Vec<MessageView>,
    ) -> Bytes {
        let mut out = String::new();
        let view = ConversationView::new(conversation);
        if self.format == ExportFormat::Csv {
            for (message, shown) in messages.iter().zip(&shown) {
                push_message(&mut out, conversation, &view, message, shown);
            }
            return out.into();
        }
        if from == 0 {
            push_line(&mut out, &ExportLine::Conversation(view));
        }
        for message in shown {
            let line = ExportLine::Message {
                conversation_id: conversation.id.clone(),
                message,
            };
            push_line(&mut out, &line);
        }
        out.into()
    }
}

fn push_line(out: &mut String, line: &ExportLine) {
    out.push_str(&serde_json::to_string(line).unwrap_or_default());
    out.push('\n');
}

fn push_message(
    out: &mut String,
    conversation: &Conversation,
    about: &ConversationView,
    message: &Message,
    shown: &MessageView,
) {
    let reply = match &shown.author {
        AuthorView::User => None,
        AuthorView::Assistant(reply) => Some(&**reply),
    };
    let metadata = |key: &str| conversation.metadata.get(key).map(text).unwrap_or_default();
    // A message without a reply shows the final state of its reply.
    let unanswered = shown.unanswered.as_ref().map(|end| end.status);
    let status = reply.map(|reply| reply.status).or(unanswered);
    let cells = [
        about.id.to_string(),
        optional(about.agent_id.as_ref()),
        optional(about.team_id.as_ref()),
        about.session_id.as_str().to_owned(),
        metadata("visitorId"),
        metadata("visitorEmail"),
        metadata("visitorName"),
        metadata("rating"),
        metadata("feedback"),
        shown.id.to_string(),
        shown.timestamp.to_string(),
        if reply.is_none() { "user" } else { "assistant" }.to_owned(),
        optional(reply.map(|reply| &reply.agent_name)),
        optional(status.map(|status| text(&json!(status)))),
        optional(reply.map(|reply| &reply.model)),
        optional(reply.map(|reply| reply.usage.prompt_tokens)),
        optional(reply.map(|reply| reply.usage.completion_tokens)),
        optional(reply.map(|reply| reply.response_time)),
        optional(reply.and_then(|reply| reply.routing_reason.as_ref())),
        message.content.clone(),
        optional((!message.attachments.is_empty()).then(|| json!(message.attachments))),
    ];
    csv::push_row(out, cells.iter().map(String::as_str));
}

/// Returns a value as a cell, which is empty without one.
fn optional(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Returns a JSON value as a cell.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
