//! Conversations as a file, under the filters of the list: JSON lines for programs, or CSV for spreadsheets. It is written
//! while it is sent, a page of messages at a time, so that its length costs no memory; a failure breaks the transfer, so
//! that half a file is never taken for a whole one.

use std::{collections::VecDeque, fmt::Write, io};

use axum::{
    body::Body,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{TryStreamExt, stream};
use http::header;
use serde_json::{Value, json};
use switchboard_backends::store::listing::{ListCursor, ListQuery, ListedConversation};
use switchboard_schemas::{
    audit::{AuditAction, FieldChange},
    conversation::{Conversation, Message, MessageAuthor},
    ids::OrgId,
    organization::Organization,
    time::Timestamp,
};

use super::{
    READS_AT_ONCE,
    filter::{Filter, LOOKED_AT_MAX, Wanted},
    read_all, view, with_failures,
};
use crate::{
    admin::{
        administrator::{Action, Administrator},
        csv,
        things::organization,
    },
    audit::AuditChange,
    http::{ApiError, ApiResult},
    state::AppState,
};

/// Messages that are held at once.
const MESSAGES_AT_ONCE: u32 = 100;
/// The columns of CSV.
const COLUMNS: [&str; 20] = [
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
];

/// How the file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Jsonl,
    Csv,
}

/// A file that is being written.
struct Exporter {
    state: AppState,
    org: OrgId,
    format: Format,
    filter: Filter,
    query: ListQuery,
    /// Whether the last part of the list was read.
    is_last: bool,
    listed: VecDeque<ListedConversation>,
    ready: VecDeque<Conversation>,
    /// The conversation that is being written, and the place of its next message.
    current: Option<(Conversation, u64)>,
}

/// Sends the conversations.
pub(in crate::admin) async fn export(
    State(state): State<AppState>,
    administrator: Administrator,
    Path(org): Path<String>,
    Query(wanted): Query<Wanted>,
) -> ApiResult<Response> {
    let Organization { id: org, .. } =
        organization(&state, &administrator, &org, Action::ActOnConversations).await?;
    let format = Format::parse(wanted.format.as_deref())?;
    let (filter, query) = (wanted.filter()?, wanted.query()?);
    record(&state, &administrator, &org, format).await;
    let name = format!(
        "conversations-{}.{}",
        &Timestamp::now().to_string()[..10],
        format.name()
    );
    let headers = [
        (header::CONTENT_TYPE, format.media_type().to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        ),
        (header::CACHE_CONTROL, "no-store, no-transform".to_owned()),
    ];
    let exporter = Exporter {
        state,
        org,
        format,
        filter,
        query,
        is_last: false,
        listed: VecDeque::new(),
        ready: VecDeque::new(),
        current: None,
    };
    let head = stream::once(async move { Ok(format.head()) });
    let rest = stream::try_unfold(exporter, Exporter::step);
    Ok((
        headers,
        Body::from_stream(futures::StreamExt::chain(head, rest)),
    )
        .into_response())
}

/// That conversations left the service is worth an entry; which visitor was looked for is not to be kept there.
async fn record(state: &AppState, administrator: &Administrator, org: &OrgId, format: Format) {
    let fields = vec![FieldChange {
        field: "format".into(),
        before: None,
        after: Some(format.name().into()),
    }];
    let change = AuditChange {
        org,
        kind: "conversations",
        subject: org.as_str(),
        action: AuditAction::Export,
        fields,
    };
    administrator.record(state, change).await;
}

impl Format {
    fn parse(text: Option<&str>) -> ApiResult<Self> {
        match text {
            None | Some("jsonl") => Ok(Self::Jsonl),
            Some("csv") => Ok(Self::Csv),
            Some(_) => Err(ApiError::field("format", "must be jsonl or csv")),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
        }
    }

    const fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }

    fn head(self) -> Bytes {
        let mut out = String::new();
        if self == Self::Csv {
            out.push_str(csv::BYTE_ORDER_MARK);
            csv::push_row(&mut out, COLUMNS);
        }
        out.into()
    }
}

impl Exporter {
    /// The next part of the file; none at its end.
    async fn step(self) -> io::Result<Option<(Bytes, Self)>> {
        self.next_part().await.map_err(|error| {
            let facts = error.into_parts();
            tracing::warn!(detail = %facts.detail, "an export breaks off");
            io::Error::other("the export breaks off")
        })
    }

    async fn next_part(mut self) -> ApiResult<Option<(Bytes, Self)>> {
        loop {
            if let Some((conversation, from)) = self.current.take() {
                let store = &self.state.backends.store;
                let messages = store
                    .messages(&self.org, &conversation.id, from, MESSAGES_AT_ONCE)
                    .await?;
                // Also where it was deleted meanwhile.
                if messages.is_empty() {
                    continue;
                }
                let shown = with_failures(&self.state, &conversation, &messages).await?;
                let part = self.written(&conversation, from, &messages, shown);
                self.current = Some((conversation, from + messages.len() as u64));
                return Ok(Some((part, self)));
            }
            if let Some(conversation) = self.ready.pop_front() {
                self.current = Some((conversation, 0));
            } else if !self.listed.is_empty() {
                self.read_some().await?;
            } else if self.is_last {
                return Ok(None);
            } else {
                self.list_some().await?;
            }
        }
    }

    async fn list_some(&mut self) -> ApiResult<()> {
        let listed = self
            .state
            .backends
            .store
            .conversations(&self.org, &self.query)
            .await?;
        self.is_last = listed.len() < LOOKED_AT_MAX as usize;
        if let Some(last) = listed.last() {
            self.query.behind = Some(ListCursor {
                began_at: last.began_at,
                id: Some(last.id.clone()),
            });
        }
        self.listed = listed.into();
        Ok(())
    }

    async fn read_some(&mut self) -> ApiResult<()> {
        let part = self
            .listed
            .drain(..self.listed.len().min(READS_AT_ONCE))
            .collect();
        let mut found = read_all(&self.state, &self.org, part);
        while let Some((_, conversation)) = found.try_next().await? {
            self.ready
                .extend(conversation.filter(|conversation| self.filter.passes(conversation)));
        }
        Ok(())
    }

    fn written(
        &self,
        conversation: &Conversation,
        from: u64,
        messages: &[Message],
        shown: Vec<Value>,
    ) -> Bytes {
        let mut out = String::new();
        if self.format == Format::Jsonl && from == 0 {
            push_line(&mut out, "conversation", view::summary(conversation));
        }
        for (message, mut said) in messages.iter().zip(shown) {
            match self.format {
                Format::Jsonl => {
                    said["conversationId"] = json!(conversation.id);
                    push_line(&mut out, "message", said);
                }
                Format::Csv => push_message(&mut out, conversation, message, &said),
            }
        }
        out.into()
    }
}

fn push_line(out: &mut String, kind: &str, mut line: Value) {
    line["type"] = kind.into();
    // Writing into a text cannot fail.
    let _ = writeln!(out, "{line}");
}

fn push_message(out: &mut String, conversation: &Conversation, message: &Message, said: &Value) {
    let about = view::summary(conversation);
    // Of a message without an answer it says why there is none.
    let status = said.get("status").unwrap_or(&said["unanswered"]["status"]);
    let known = |key: &str| conversation.metadata.get(key).map(text).unwrap_or_default();
    let tokens = |key: &str| said["usage"].get(key).map(text).unwrap_or_default();
    let role = if message.author == MessageAuthor::User {
        "user"
    } else {
        "assistant"
    };
    let cells = [
        text(&about["id"]),
        text(&about["agentId"]),
        text(&about["teamId"]),
        text(&about["sessionId"]),
        known("visitorId"),
        known("visitorEmail"),
        known("visitorName"),
        known("rating"),
        known("feedback"),
        text(&said["id"]),
        text(&said["timestamp"]),
        role.to_owned(),
        text(&said["agentName"]),
        text(status),
        text(&said["model"]),
        tokens("promptTokens"),
        tokens("completionTokens"),
        text(&said["responseTime"]),
        text(&said["routingReason"]),
        message.content.clone(),
    ];
    csv::push_row(out, cells.iter().map(String::as_str));
}

/// A value as a cell.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
