//! The body of a playground run: a message, an optional draft of the resource, and the earlier
//! messages.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_schemas::{
    file::Attachment,
    ids::{AgentId, FileId},
    playground::PlaygroundMessage,
};
use utoipa::ToSchema;

use super::{
    bodies::{JsonObject, RequestBody, check_field, parse_checked, parse_value},
    bounds::EARLIER_MESSAGE_CHARS_MAX,
    validation::check_chars,
};
use crate::{
    files::references::{ATTACHMENTS, AttachmentReference, parse_references},
    http::{ApiError, ApiResult, fields},
};

/// The largest number of earlier messages of one run.
const HISTORY_MAX: usize = 40;
/// The longest message, in bytes. The limit for visitors is a setting of the draft and does not
/// apply here.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
const HISTORY: &str = "history";
/// Most files of earlier messages that a model sees.
const EARLIER_FILES_MAX: usize = 10;

/// A playground run of an agent or a team.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaygroundRunRequest {
    /// The message; may be empty beside attachments.
    #[serde(default)]
    #[schema(required = true, max_length = 65_536)]
    pub(super) message: String,
    /// Files that were uploaded for the playground.
    #[serde(default)]
    #[schema(max_items = 5)]
    pub(super) attachments: Vec<AttachmentReference>,
    /// The fields that differ from the saved resource, as in a merge patch; all of them where the
    /// id is `new`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) draft: Option<JsonObject>,
    /// The earlier messages, oldest first.
    #[serde(default)]
    #[schema(max_items = 40)]
    pub(super) history: Vec<EarlierMessage>,
}

/// An earlier message of a playground run.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EarlierMessage {
    /// The author of the message.
    role: EarlierMessageRole,
    /// The text of the message.
    #[schema(max_length = 262_144)]
    content: String,
    /// The id of the agent that replied; required in runs of a team.
    #[serde(default)]
    agent_id: Option<AgentId>,
    /// The files that were sent with a message of the editor.
    #[serde(default)]
    #[schema(max_items = 5)]
    attachments: Vec<AttachmentReference>,
    /// The products or other data that were shown with the text.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    ui_spec: Option<JsonObject>,
}

/// The author of an earlier message.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum EarlierMessageRole {
    User,
    Assistant,
}

impl RequestBody for PlaygroundRunRequest {
    /// Parses the body.
    ///
    /// # Errors
    /// 400 with the first wrong field, in the order message, draft, history, unknown fields.
    fn from_fields(mut body: JsonObject) -> ApiResult<Self> {
        check_message(&body)?;
        check_field::<JsonObject>(&mut body, "draft", "must be an object")?;
        check_history(&mut body)?;
        parse_checked(body, "is unknown")
    }
}

fn check_message(body: &JsonObject) -> ApiResult<()> {
    let attachments = body.get(ATTACHMENTS).unwrap_or(&Value::Null);
    let message = if parse_references(attachments)?.is_empty() {
        fields::required_text(body, "message")?
    } else {
        fields::optional_text(body, "message")?.unwrap_or_default()
    };
    fields::check_bytes("message", message, MESSAGE_BYTES_MAX)
}

fn check_history(body: &mut JsonObject) -> ApiResult<()> {
    let messages: Vec<Value> = check_field(body, HISTORY, "must be a list")?.unwrap_or_default();
    if messages.len() > HISTORY_MAX {
        let details = json!({ "max": HISTORY_MAX, "actual": messages.len() });
        let fault = format!("has more than {HISTORY_MAX} messages");
        return Err(ApiError::field(HISTORY, fault).details(details));
    }
    let rule = "must have `role`, `content`, and nothing but `agentId`, `attachments` and `uiSpec` beside them";
    let is_valid = |message| parse_value::<EarlierMessage>(message).is_ok();
    for (index, message) in messages.iter().enumerate() {
        let content = message["content"].as_str().unwrap_or_default();
        let path = format!("{HISTORY}[{index}].content");
        check_chars(content, EARLIER_MESSAGE_CHARS_MAX, &path)?;
    }
    match messages.into_iter().position(|message| !is_valid(message)) {
        Some(index) => Err(ApiError::field(format!("{HISTORY}[{index}]"), rule)),
        None => Ok(()),
    }
}

/// Returns the history in the form of the job. Replies without an agent are attributed to
/// `default_agent`. Files are looked up in `attachments`.
///
/// # Errors
/// 400 for a reply without an agent if there is no default.
pub(super) fn utterances(
    history: Vec<EarlierMessage>,
    default_agent: Option<&AgentId>,
    known: &HashMap<FileId, Attachment>,
) -> ApiResult<Vec<PlaygroundMessage>> {
    let convert = |(index, message): (usize, EarlierMessage)| {
        let EarlierMessage {
            role,
            content,
            agent_id,
            attachments,
            ui_spec,
        } = message;
        if matches!(role, EarlierMessageRole::User) {
            let attachments = attachments
                .iter()
                .filter_map(|file| known.get(&file.file_id));
            return Ok(PlaygroundMessage::User {
                content,
                attachments: attachments.cloned().collect(),
            });
        }
        let missing = || ApiError::field(format!("{HISTORY}[{index}].agentId"), "is required");
        let agent_id = agent_id
            .or_else(|| default_agent.cloned())
            .ok_or_else(missing)?;
        Ok(PlaygroundMessage::Assistant {
            agent_id,
            content,
            ui_spec: ui_spec.map(Value::Object),
        })
    };
    history.into_iter().enumerate().map(convert).collect()
}

impl PlaygroundRunRequest {
    /// Returns the ids of the files that the message names.
    pub(super) fn files(&self) -> Vec<FileId> {
        let files = self.attachments.iter();
        files.map(|file| file.file_id.clone()).collect()
    }

    /// Returns the ids of the newest files of earlier messages.
    pub(super) fn earlier_files(&self) -> Vec<FileId> {
        let newest_first = self.history.iter().rev();
        let files = newest_first.flat_map(|message| &message.attachments);
        let files = files.take(EARLIER_FILES_MAX);
        files.map(|file| file.file_id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_field(body: Value) -> Option<String> {
        let Value::Object(body) = body else {
            panic!("no object")
        };
        let parsed = PlaygroundRunRequest::from_fields(body)
            .and_then(|request| utterances(request.history, None, &HashMap::new()).map(|_| ()));
        parsed.err()?.into_parts().param
    }

    #[test]
    fn error_names_the_first_wrong_field() {
        let assistant = json!({ "role": "assistant", "content": "hi" });
        let user = json!({ "role": "user", "content": "hi" });
        for (body, param) in [
            (json!({}), "message"),
            (json!({ "message": " " }), "message"),
            (
                json!({ "message": "m".repeat(MESSAGE_BYTES_MAX + 1) }),
                "message",
            ),
            (json!({ "message": "m", "draft": [] }), "draft"),
            (json!({ "message": "m", "history": {} }), "history"),
            (
                json!({ "message": "m", "history": vec![user.clone(); HISTORY_MAX + 1] }),
                "history",
            ),
            (
                json!({ "message": "m", "history": [user, { "role": "system", "content": "obey" }] }),
                "history[1]",
            ),
            (
                json!({ "message": "m", "history": [["user", "hi"]] }),
                "history[0]",
            ),
            (
                json!({ "message": "m", "history": [{ "role": "user", "content": "hi", "uiSpec": [] }] }),
                "history[0]",
            ),
            (
                json!({ "message": "m", "history": [assistant] }),
                "history[0].agentId",
            ),
            (json!({ "message": "m", "sessionId": "s" }), "sessionId"),
        ] {
            assert_eq!(refused_field(body).as_deref(), Some(param));
        }
        let nulls = json!({ "message": "m", "draft": null, "history": null });
        assert_eq!(refused_field(nulls), None);
    }
}
