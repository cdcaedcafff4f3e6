//! What a model is asked, in the protocol's words: messages, and the tools that it may call.

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Value, json};

/// What a model is asked.
#[derive(Clone, Debug)]
pub(crate) struct Prompt {
    /// System instructions, history, message; behind them the calls of this reply with their results.
    pub(crate) messages: Vec<PromptMessage>,
    /// Tools that it may call; none where it shall only speak.
    pub(crate) tools: Vec<ToolDeclaration>,
    /// Whether it may call them now. They stay declared when it may not: earlier calls refer to them.
    pub(crate) may_call: bool,
    /// Sampling temperature; the provider's own when absent.
    pub(crate) temperature: Option<f32>,
    /// Longest answer.
    pub(crate) max_tokens: u32,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptMessage {
    /// Who speaks.
    pub(crate) role: Role,
    /// Text.
    pub(crate) content: String,
    /// Calls that an assistant made with it.
    pub(crate) calls: Vec<SentCall>,
    /// The call whose result this is.
    pub(crate) call_id: Option<String>,
}

/// A call as the model is reminded of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentCall {
    /// Names the call within its prompt.
    pub(crate) id: String,
    /// Tool.
    pub(crate) name: String,
    /// JSON of an object; servers parse it again.
    pub(crate) arguments: String,
}

/// How the tools of a prompt are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolOffer {
    /// Not at all.
    None,
    /// As they are, because earlier calls refer to them, and not to be called.
    Declared,
    /// To be called.
    Callable,
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolDeclaration {
    /// Name, as it is called.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: String,
    /// JSON Schema of its arguments.
    pub(crate) parameters: Value,
}

/// Who speaks in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// The organization's instructions.
    System,
    /// The visitor.
    User,
    /// The agent.
    Assistant,
    /// A tool.
    Tool,
}

impl PromptMessage {
    /// Plain text.
    pub(crate) fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            calls: Vec::new(),
            call_id: None,
        }
    }

    /// What an assistant said and called.
    pub(crate) fn calling(content: impl Into<String>, calls: Vec<SentCall>) -> Self {
        Self {
            calls,
            ..Self::text(Role::Assistant, content)
        }
    }

    /// What a call gave.
    pub(crate) fn result(call_id: &str, content: impl Into<String>) -> Self {
        Self {
            call_id: Some(call_id.to_owned()),
            ..Self::text(Role::Tool, content)
        }
    }
}

impl Serialize for PromptMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_struct("PromptMessage", 4)?;
        message.serialize_field("role", &self.role)?;
        if self.content.is_empty() && !self.calls.is_empty() {
            // Some servers refuse an empty text beside calls; null is what the protocol shows.
            message.serialize_field("content", &Value::Null)?;
        } else {
            message.serialize_field("content", &self.content)?;
        }
        if !self.calls.is_empty() {
            message.serialize_field("tool_calls", &self.calls)?;
        }
        if let Some(id) = &self.call_id {
            message.serialize_field("tool_call_id", id)?;
        }
        message.end()
    }
}

impl Serialize for SentCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let function = json!({ "name": self.name, "arguments": self.arguments });
        json!({ "id": self.id, "type": "function", "function": function }).serialize(serializer)
    }
}

impl Serialize for ToolDeclaration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let function = json!({ "name": self.name, "description": self.description, "parameters": self.parameters });
        json!({ "type": "function", "function": function }).serialize(serializer)
    }
}
