//! Step 2 of the path: validates a chat body and builds its job. Ids are derived from the request,
//! so that no lock is needed.

use data_encoding::HEXLOWER;
use http::request::Parts;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use switchboard_schemas::{
    agent::Agent,
    client_text::{SessionId, VisitorId},
    conversation_job::ReplyJob,
    ids::{ConversationId, FileId, IngressId, MessageId, RequestId},
    lead::LeadForm,
    routing_job::TeamMessageJob,
    team::Team,
    time::Timestamp,
    turn::{Turn, Visitor},
};

use super::{bodies::ChatRequest, lead::accept_lead};
use crate::{
    auth::caller::AuthorizedCaller,
    files::references::{ATTACHMENTS, parse_references},
    http::{ApiError, ApiResult, client_address::stored_address, fields},
    limits::RateLimitSubject,
    reply::shape::ReplyShape,
    state::AppState,
};

/// Maximum length of a visitor's name, in bytes.
pub(crate) const VISITOR_NAME_BYTES_MAX: usize = 1024;

/// A validated chat request.
#[derive(Debug)]
pub(crate) struct ChatBody {
    message: String,
    session_id: SessionId,
    visitor: Visitor,
    metadata: Map<String, Value>,
    files: Vec<FileId>,
    /// The `conversationId` of the body; only team routes accept it.
    conversation: Option<String>,
}

/// The parts of a turn that do not come from the request body.
pub(crate) struct TurnContext {
    pub(crate) request_id: RequestId,
    /// The ingress process that waits for the reply; `None` for asynchronous requests.
    pub(crate) reply_to: Option<IngressId>,
    /// Client address, truncated to its stored form.
    pub(crate) ip_address: Option<String>,
}

impl ChatBody {
    /// Validates the fields of a body. The message may have at most `message_chars_max` Unicode
    /// scalar values; `conversation_id` is `null` for agents.
    pub(crate) fn parse(
        body: &ChatRequest,
        conversation_id: &Value,
        message_chars_max: u32,
    ) -> ApiResult<Self> {
        let conversation = fields::text_value("conversationId", conversation_id)?;
        let files = parse_references(&body.attachments);
        let message = match &files {
            Ok(files) if files.is_empty() => fields::required_text_value("message", &body.message)?,
            // An invalid list is an error of its own, below.
            _ => fields::text_value("message", &body.message)?.unwrap_or_default(),
        };
        let session_id = fields::required_text_value("sessionId", &body.session_id)?;
        let session_id = fields::client_text("sessionId", session_id)?;
        check_length(message, message_chars_max)?;
        Ok(Self {
            message: message.to_owned(),
            session_id,
            visitor: parse_visitor(body)?,
            metadata: fields::parse_metadata(&body.metadata)?.unwrap_or_default(),
            files: files?,
            conversation: conversation.map(ToOwned::to_owned),
        })
    }

    /// Adds the lead of the body, which the form must accept.
    pub(crate) fn with_lead(
        mut self,
        submitted: &Value,
        form: Option<&LeadForm>,
    ) -> ApiResult<Self> {
        if submitted.is_null() {
            return Ok(self);
        }
        let accepted = accept_lead(submitted, form)?;
        let visitor = &mut self.visitor;
        visitor.name = visitor.name.take().or(accepted.name);
        visitor.email = visitor.email.take().or(accepted.email);
        visitor.lead = Some(Box::new(accepted.lead));
        Ok(self)
    }

    /// Assigns the message to the caller: the visitor of a visitor token is authoritative, and a
    /// different `visitorId` in the body is rejected.
    pub(crate) fn sent_by<P>(mut self, caller: &AuthorizedCaller<P>) -> ApiResult<Self> {
        if let Some(own) = caller.visitor_id() {
            let claimed = self.visitor.id.replace(own.clone());
            if claimed.is_some_and(|claimed| claimed != *own) {
                return Err(ApiError::field(
                    "visitorId",
                    "does not match the visitor token",
                ));
            }
        }
        Ok(self)
    }

    /// Returns the rate-limit subject: the visitor id if known, otherwise the session id.
    pub(crate) fn rate_limit_subject(&self) -> RateLimitSubject<'_> {
        let session = RateLimitSubject::Session(self.session_id.as_str());
        self.visitor
            .id
            .as_ref()
            .map_or(session, |id| RateLimitSubject::Visitor(id.as_str()))
    }

    /// Builds the job that lets an inference worker answer this message.
    pub(crate) fn into_agent_job<P>(
        self,
        caller: &AuthorizedCaller<P>,
        agent: &Agent,
        context: TurnContext,
    ) -> ReplyJob {
        let conversation_id = caller.conversation_id(&agent.id, &self.session_id);
        let turn = self.into_turn(caller, conversation_id, context);
        ReplyJob {
            agent_id: agent.id.clone(),
            routed: None,
            turn,
            attempt_min: 1,
        }
    }

    /// Builds the job that lets a routing worker choose the agent. Fails if the body names a
    /// conversation other than the one derived from team and session.
    pub(crate) fn into_team_job<P>(
        self,
        caller: &AuthorizedCaller<P>,
        team: &Team,
        context: TurnContext,
    ) -> ApiResult<TeamMessageJob> {
        let conversation_id = ConversationId::of_team(caller.org_id(), &team.id, &self.session_id);
        if self
            .conversation
            .as_ref()
            .is_some_and(|named| named != conversation_id.as_str())
        {
            return Err(ApiError::field(
                "conversationId",
                "is not this team's conversation of this session",
            ));
        }
        Ok(TeamMessageJob {
            team_id: team.id.clone(),
            turn: self.into_turn(caller, conversation_id, context),
        })
    }

    /// Returns the ids of the files that the message names.
    pub(crate) fn files(&self) -> &[FileId] {
        &self.files
    }

    /// Returns a hash of the request's content; retries with the same content have the same hash.
    pub(crate) fn fingerprint(&self) -> String {
        let visitor = &self.visitor;
        let mut said = json!([
            self.message,
            self.session_id.as_str(),
            self.conversation,
            visitor.id.as_ref().map(VisitorId::as_str),
            visitor.email,
            visitor.name,
            self.metadata,
        ]);
        if let Value::Array(said) = &mut said {
            // Without the time, which differs in a retry.
            said.extend(visitor.lead.iter().map(|lead| json!(lead.values)));
            if !self.files.is_empty() {
                said.push(json!({ ATTACHMENTS: self.files }));
            }
        }
        HEXLOWER.encode(&Sha256::digest(said.to_string()))
    }

    fn into_turn<P>(
        self,
        caller: &AuthorizedCaller<P>,
        conversation_id: ConversationId,
        context: TurnContext,
    ) -> Turn {
        Turn {
            org_id: caller.org_id().clone(),
            message_id: MessageId::new_in(&conversation_id),
            conversation_id,
            request_id: context.request_id,
            key_id: caller.key_id().cloned(),
            session_id: self.session_id,
            content: self.message,
            // Found when the message is submitted.
            attachments: Vec::new(),
            visitor: self.visitor,
            metadata: self.metadata,
            source: caller.source(),
            ip_address: context.ip_address,
            accepted_at: Timestamp::now(),
            reply_to: context.reply_to,
            publish_nonce: RequestId::random().as_str().to_owned(),
        }
    }
}

impl TurnContext {
    /// Collects the context of a request from its headers and extensions.
    pub(crate) fn from_request(
        state: &AppState,
        request_id: RequestId,
        shape: ReplyShape,
        parts: &Parts,
    ) -> Self {
        let reply_to = shape.waits_for_reply().then(|| state.ingress_id.clone());
        Self {
            request_id,
            reply_to,
            ip_address: stored_address(parts, &state.config),
        }
    }
}

/// Counts Unicode scalar values, as the widget does; counting bytes would reject messages that the
/// widget accepts.
fn check_length(message: &str, chars_max: u32) -> ApiResult<()> {
    let actual = message.chars().count();
    if u64::try_from(actual).unwrap_or(u64::MAX) <= u64::from(chars_max) {
        return Ok(());
    }
    let details = json!({ "max": chars_max, "actual": actual });
    let fault = format!("is longer than the {chars_max} characters that the agent allows");
    Err(ApiError::field("message", fault).details(details))
}

fn parse_visitor(body: &ChatRequest) -> ApiResult<Visitor> {
    let id = fields::text_value("visitorId", &body.visitor_id)?;
    let email = fields::text_value("visitorEmail", &body.visitor_email)?;
    let name = fields::text_value("visitorName", &body.visitor_name)?;
    fields::check_bytes(
        "visitorName",
        name.unwrap_or_default(),
        VISITOR_NAME_BYTES_MAX,
    )?;
    Ok(Visitor {
        id: id
            .map(|id| fields::client_text::<VisitorId>("visitorId", id))
            .transpose()?,
        email: email
            .map(|email| fields::parse_email("visitorEmail", email))
            .transpose()?,
        name: name.map(ToOwned::to_owned),
        lead: None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chat::bodies::TeamChatRequest;

    fn parse_body(body: &Value) -> ApiResult<ChatBody> {
        let request: TeamChatRequest = serde_json::from_value(body.clone()).unwrap();
        let (request, conversation_id) = request.into_parts();
        ChatBody::parse(&request, &conversation_id, 5)
    }

    fn parse(body: &Value) -> Result<ChatBody, Option<String>> {
        parse_body(body).map_err(|error| error.into_parts().param)
    }

    fn refused_field(body: Value) -> Option<String> {
        parse(&body).err().flatten()
    }

    #[test]
    fn missing_blank_or_mistyped_field_is_named() {
        for bad in [Value::Null, json!(1), json!(""), json!(" \t"), json!(["a"])] {
            assert_eq!(
                refused_field(json!({"message": bad, "sessionId": "s"})).as_deref(),
                Some("message")
            );
            assert_eq!(
                refused_field(json!({"message": "m", "sessionId": bad})).as_deref(),
                Some("sessionId")
            );
        }
        assert_eq!(
            refused_field(json!({"sessionId": "s"})).as_deref(),
            Some("message")
        );
        assert_eq!(
            refused_field(json!({"message": "m", "sessionId": "a\nb"})).as_deref(),
            Some("sessionId")
        );
    }

    #[test]
    fn message_length_counts_scalar_values() {
        assert!(parse(&json!({"message": "🦀🦀🦀🦀🦀", "sessionId": "s"})).is_ok());
        let error = parse_body(&json!({"message": "aaaaaa", "sessionId": "s"}));
        let error = error.unwrap_err().into_parts();
        assert_eq!(error.details, Some(json!({"max": 5, "actual": 6})));
        let detail = "message is longer than the 5 characters that the agent allows";
        assert_eq!(error.detail, detail);
    }

    #[test]
    fn visitor_data_is_optional_and_validated() {
        for (field, bad) in [
            ("visitorEmail", "a@b"),
            ("visitorId", ""),
            ("visitorEmail", ""),
        ] {
            let body = json!({"message": "m", "sessionId": "s", field: bad});
            assert_eq!(refused_field(body).as_deref(), Some(field));
        }
        let body = json!({"message": "m", "sessionId": "s", "metadata": []});
        assert_eq!(refused_field(body).as_deref(), Some("metadata"));
        let body = parse(
            &json!({"message": "m", "sessionId": "s", "visitorId": "v", "visitorEmail": null}),
        )
        .unwrap();
        assert_eq!(body.visitor.id.unwrap().as_str(), "v");
        assert_eq!(body.visitor.email, None);
    }

    #[test]
    fn fingerprint_depends_on_content_and_not_on_spelling() {
        let print = |body: Value| parse(&body).unwrap().fingerprint();
        let said = json!({"message": "m", "sessionId": "s", "metadata": {"a": 1, "b": 2}});
        let again = json!({"stream": false, "metadata": {"b": 2, "a": 1}, "sessionId": "s", "message": "m"});
        assert_eq!(print(said.clone()), print(again));
        for (field, other) in [
            ("message", json!("n")),
            ("sessionId", json!("t")),
            ("conversationId", json!("c")),
            ("visitorId", json!("v")),
            ("visitorEmail", json!("a@b.example")),
            ("visitorName", json!("v")),
            ("metadata", json!({"a": 1})),
        ] {
            let mut changed = said.clone();
            changed[field] = other;
            assert_ne!(print(said.clone()), print(changed), "{field}");
        }
    }

    proptest! {
        #[test]
        fn message_within_the_limit_is_unchanged(message in "\\PC{1,5}") {
            prop_assume!(!message.trim().is_empty());
            let body = parse(&json!({"message": message, "sessionId": "s"})).unwrap();
            prop_assert_eq!(body.message, message);
        }
    }
}
