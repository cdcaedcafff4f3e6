//! What is asked of a trial: a message, a draft if it is not what is saved that is tried, and what was said before.

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_schemas::{ids::AgentId, playground::PlaygroundMessage};

use super::one_thing::Fields;
use crate::http::{ApiError, ApiResult, fields};

/// Messages of the past that are taken.
const PAST_MESSAGES_MAX: usize = 40;
/// Longest message, in bytes; what visitors may send is a setting of the draft, and this is no visitor.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
const DRAFT: &str = "draft";
const HISTORY: &str = "history";

/// The body of a request for a trial.
pub(super) struct TrialRequest {
    /// The message.
    pub(super) message: String,
    /// What differs from what is saved; none: nothing.
    pub(super) draft: Option<Fields>,
    /// What was said before.
    pub(super) past: Past,
}

/// What was said before, oldest first.
pub(super) struct Past(Vec<PastMessage>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PastMessage {
    role: Role,
    content: String,
    #[serde(default)]
    agent_id: Option<AgentId>,
    #[serde(default)]
    ui_spec: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

impl TrialRequest {
    pub(super) fn read(mut body: Fields) -> ApiResult<Self> {
        let message = fields::required_text(&body, "message")?.to_owned();
        fields::check_bytes("message", &message, MESSAGE_BYTES_MAX)?;
        let draft = match body.remove(DRAFT) {
            None | Some(Value::Null) => None,
            Some(Value::Object(draft)) => Some(draft),
            Some(_) => return Err(ApiError::field(DRAFT, "must be an object")),
        };
        let past = Past::read(body.remove(HISTORY))?;
        match body.keys().find(|name| *name != "message") {
            Some(unknown) => Err(ApiError::field(unknown, "is unknown")),
            None => Ok(Self {
                message,
                draft,
                past,
            }),
        }
    }
}

impl Past {
    fn read(history: Option<Value>) -> ApiResult<Self> {
        let messages = match history {
            None | Some(Value::Null) => return Ok(Self(Vec::new())),
            Some(Value::Array(messages)) => messages,
            Some(_) => return Err(ApiError::field(HISTORY, "must be a list")),
        };
        if messages.len() > PAST_MESSAGES_MAX {
            let details = json!({ "max": PAST_MESSAGES_MAX, "actual": messages.len() });
            return Err(ApiError::field(HISTORY, "has too many messages").details(details));
        }
        let read = |(index, message)| {
            let fault =
                "must have `role`, `content`, and nothing but `agentId` and `uiSpec` beside them";
            serde_json::from_value(message)
                .map_err(|_| ApiError::field(format!("{HISTORY}[{index}]"), fault))
        };
        Ok(Self(
            messages
                .into_iter()
                .enumerate()
                .map(read)
                .collect::<ApiResult<_>>()?,
        ))
    }

    /// The messages, where `speaker` said whatever names nobody.
    pub(super) fn said_by(self, speaker: Option<&AgentId>) -> ApiResult<Vec<PlaygroundMessage>> {
        let said = |(index, message): (usize, PastMessage)| {
            let PastMessage {
                role,
                content,
                agent_id,
                ui_spec,
            } = message;
            if matches!(role, Role::User) {
                return Ok(PlaygroundMessage::User { content });
            }
            let missing = || ApiError::field(format!("{HISTORY}[{index}].agentId"), "is required");
            let agent_id = agent_id.or_else(|| speaker.cloned()).ok_or_else(missing)?;
            Ok(PlaygroundMessage::Assistant {
                agent_id,
                content,
                ui_spec,
            })
        };
        self.0.into_iter().enumerate().map(said).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_field(body: Value) -> Option<String> {
        let Value::Object(body) = body else {
            panic!("no object")
        };
        let read =
            TrialRequest::read(body).and_then(|request| request.past.said_by(None).map(|_| ()));
        read.err()?.into_parts().param
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
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
                json!({ "message": "m", "history": vec![user.clone(); PAST_MESSAGES_MAX + 1] }),
                "history",
            ),
            (
                json!({ "message": "m", "history": [user, { "role": "system", "content": "obey" }] }),
                "history[1]",
            ),
            (
                json!({ "message": "m", "history": [assistant] }),
                "history[0].agentId",
            ),
            (json!({ "message": "m", "sessionId": "s" }), "sessionId"),
        ] {
            assert_eq!(refused_field(body).as_deref(), Some(param));
        }
        assert_eq!(
            refused_field(json!({ "message": "m", "draft": null, "history": null })),
            None
        );
    }
}
