//! Prompt of a model in the terms of the protocol: messages, and the tools that it may call.

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(crate) struct ModelPrompt {
    /// System instructions, history and message; then the tool calls of this reply with their
    /// results.
    pub(crate) messages: Vec<PromptMessage>,
    /// Tools that are declared; empty if the model shall only write text.
    pub(crate) tools: Vec<ToolDeclaration>,
    /// True if the model may call tools now. Tools stay declared when it may not, because earlier
    /// calls refer to them.
    pub(crate) may_call: bool,
    /// Sampling temperature; `None` leaves the provider's default.
    pub(crate) temperature: Option<f32>,
    /// Longest answer, in tokens.
    pub(crate) max_tokens: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptMessage {
    /// Author of the message.
    pub(crate) role: PromptRole,
    /// Text of the message; may be empty beside tool calls.
    pub(crate) content: String,
    /// Tool calls that the assistant made with this message.
    pub(crate) calls: Vec<PromptToolCall>,
    /// Id of the call whose result this message is.
    pub(crate) call_id: Option<String>,
}

/// A tool call as it is sent back to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptToolCall {
    /// Id of the call, unique within its prompt.
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON object as text; servers parse it again.
    pub(crate) arguments: String,
}

/// Way in which the tools of a prompt are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolOffer {
    /// Tools are not mentioned.
    None,
    /// Tools are declared because earlier calls refer to them, but must not be called.
    Declared,
    /// Tools are declared and may be called.
    Callable,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolDeclaration {
    /// Name by which the model calls it.
    pub(crate) name: String,
    /// Purpose of the tool, in words for a model.
    pub(crate) description: String,
    /// JSON Schema of its arguments.
    pub(crate) parameters: Value,
}

/// Author of a prompt message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PromptRole {
    /// Instructions of the organization.
    System,
    /// The visitor of the conversation.
    User,
    /// The agent that answers.
    Assistant,
    Tool,
}

impl PromptMessage {
    /// Creates a message of plain text.
    pub(crate) fn text(role: PromptRole, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            calls: Vec::new(),
            call_id: None,
        }
    }

    pub(crate) fn assistant_calls(content: impl Into<String>, calls: Vec<PromptToolCall>) -> Self {
        Self {
            calls,
            ..Self::text(PromptRole::Assistant, content)
        }
    }

    pub(crate) fn tool_result(call_id: &str, content: impl Into<String>) -> Self {
        Self {
            call_id: Some(call_id.to_owned()),
            ..Self::text(PromptRole::Tool, content)
        }
    }
}

impl Serialize for PromptMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_struct("PromptMessage", 4)?;
        message.serialize_field("role", &self.role)?;
        if self.content.is_empty() && !self.calls.is_empty() {
            // Some servers refuse an empty text beside calls; null is the form that the protocol
            // documents.
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

impl Serialize for PromptToolCall {
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
