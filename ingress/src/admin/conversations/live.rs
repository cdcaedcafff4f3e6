//! The stream of a reply that is being written, in the form of the public API, for users who have
//! no API key.

use axum::Extension;
use switchboard_schemas::ids::{MessageId, RequestId};

use super::find;
use crate::{
    admin::{
        authorization::{Admin, PathIds},
        entries::not_found,
        permissions::ReadConversations,
        responses::EventStream,
    },
    chat::message_lookup::AuthorizedMessage,
    http::{ApiError, ApiResult, ArrivedAt, query::QueryTexts},
    reply::{
        ResponseContext, respond,
        resume::{LastEventIdHeader, ResumePosition, ResumeQuery},
        shape::ReplyShape,
        stream::ReplyStream,
    },
};

/// Streams a reply from a byte position to its end.
pub(in crate::admin) async fn follow(
    Admin { state, subject, .. }: Admin<ReadConversations>,
    path: PathIds,
    Extension(request_id): Extension<RequestId>,
    Extension(ArrivedAt(arrived)): Extension<ArrivedAt>,
    QueryTexts(query): QueryTexts<ResumeQuery>,
    last_event_id: LastEventIdHeader,
) -> ApiResult<EventStream> {
    let org = subject.id;
    let conversation = find(&state, &org, path.get("id")).await?;
    let not_found = || not_found("message", path.get("message"));
    let reply: Result<MessageId, _> = path.get("message").parse();
    let reply = reply.map_err(|_| not_found())?;
    if reply.conversation() != conversation.id {
        return Err(not_found());
    }
    let found = AuthorizedMessage::find(&state, &org, reply).await?;
    let position = ResumePosition::parse(&query, &last_event_id, true)?;
    let is_final = found.is_final();
    let reply_stream = ReplyStream::for_reader(state, found.org, found.reply)
        .resume_at(&position, is_final)
        .await?;
    let context = ResponseContext {
        attachments: Vec::new(),
        request_id,
        arrived,
        map_error: ApiError::reveal_provider_error,
    };
    respond(reply_stream, ReplyShape::Events, context)
        .await
        .map(EventStream)
}
