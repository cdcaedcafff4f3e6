//! Prompt of a model in the terms of the protocol: messages, and the tools that it may call.

use std::fmt;

use bytes::Bytes;
use data_encoding::BASE64;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};
use switchboard_schemas::agent::ReasoningEffort;

#[derive(Clone, Debug, Default)]
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
    /// Thoroughness of the model's thoughts; `None` leaves the provider's default.
    pub(crate) reasoning_effort: Option<ReasoningEffort>,
    /// Longest answer, in tokens.
    pub(crate) max_tokens: u32,
    /// Form of the answer, as the protocol describes it.
    pub(crate) response_format: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptMessage {
    /// Author of the message.
    pub(crate) role: PromptRole,
    /// Text of the message; may be empty beside tool calls.
    pub(crate) content: String,
    /// Pictures beside the text of a visitor.
    pub(crate) images: Vec<PromptImage>,
    /// Tool calls that the assistant made with this message.
    pub(crate) calls: Vec<PromptToolCall>,
    /// Id of the call whose result this message is.
    pub(crate) call_id: Option<String>,
    /// Fields of an assistant's message that only its provider understands.
    pub(crate) extras: ProviderFields,
}

/// A picture in a prompt.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PromptImage {
    /// Quoted name of the file.
    pub(crate) name: String,
    /// Media type of the bytes.
    pub(crate) mime_type: &'static str,
    pub(crate) bytes: Bytes,
}

/// Fields that this client does not know, and the endpoint to which they go back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProviderFields {
    /// Base URL and model of the endpoint.
    pub(crate) source: [String; 2],
    pub(crate) fields: Map<String, Value>,
}

/// A tool call as it is sent back to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptToolCall {
    /// Id of the call, unique within its prompt.
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON object as text; servers parse it again.
    pub(crate) arguments: String,
    /// Fields of the call that only its provider understands.
    pub(crate) extras: Map<String, Value>,
    /// Such fields of its function.
    pub(crate) function_extras: Map<String, Value>,
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
            images: Vec::new(),
            calls: Vec::new(),
            call_id: None,
            extras: ProviderFields::default(),
        }
    }

    pub(crate) fn assistant_calls(
        content: impl Into<String>,
        calls: Vec<PromptToolCall>,
        extras: ProviderFields,
    ) -> Self {
        Self {
            calls,
            extras,
            ..Self::text(PromptRole::Assistant, content)
        }
    }

    /// Adds pictures to a message of a visitor.
    pub(crate) fn with_images(mut self, images: Vec<PromptImage>) -> Self {
        self.images = images;
        self
    }

    /// Replaces the pictures by words, for a model that does not see them.
    pub(super) fn describe_images(&mut self) {
        for image in self.images.drain(..) {
            let note = format!("[You cannot see the picture {}; say so.]", image.name);
            self.content = format!("{}\n\n{note}", self.content)
                .trim_start()
                .to_owned();
        }
    }

    /// Returns the names of the fields that only a provider understands.
    pub(super) fn extra_names(&self) -> impl Iterator<Item = &str> {
        let of_calls = self
            .calls
            .iter()
            .flat_map(|call| call.extras.keys().chain(call.function_extras.keys()));
        self.extras
            .fields
            .keys()
            .chain(of_calls)
            .map(String::as_str)
    }

    /// Removes the fields that only a provider understands.
    pub(super) fn clear_extras(&mut self) {
        self.extras = ProviderFields::default();
        for call in &mut self.calls {
            call.extras.clear();
            call.function_extras.clear();
        }
    }

    pub(crate) fn tool_result(call_id: &str, content: impl Into<String>) -> Self {
        Self {
            call_id: Some(call_id.to_owned()),
            ..Self::text(PromptRole::Tool, content)
        }
    }
}

impl PromptImage {
    /// Returns the picture as an address that contains it.
    pub(super) fn data_url(&self) -> String {
        format!(
            "data:{};base64,{}",
            self.mime_type,
            BASE64.encode(&self.bytes)
        )
    }
}

impl fmt::Debug for PromptImage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} of {} bytes",
            self.mime_type,
            self.bytes.len()
        )
    }
}

impl Serialize for PromptMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("role", &self.role)?;
        if self.content.trim().is_empty() && !self.calls.is_empty() {
            // Some servers refuse an empty text beside calls; null is the form that the protocol
            // documents.
            message.serialize_entry("content", &Value::Null)?;
        } else if !self.images.is_empty() {
            let text = json!({ "type": "text", "text": self.content });
            let images = self.images.iter().map(
                |image| json!({ "type": "image_url", "image_url": { "url": image.data_url() } }),
            );
            let parts: Vec<_> = std::iter::once(text).chain(images).collect();
            message.serialize_entry("content", &parts)?;
        } else {
            message.serialize_entry("content", &self.content)?;
        }
        if !self.calls.is_empty() {
            message.serialize_entry("tool_calls", &self.calls)?;
        }
        if let Some(id) = &self.call_id {
            message.serialize_entry("tool_call_id", id)?;
        }
        for (name, value) in &self.extras.fields {
            message.serialize_entry(name, value)?;
        }
        message.end()
    }
}

impl Serialize for PromptToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut function = self.function_extras.clone();
        function.insert("name".into(), self.name.as_str().into());
        function.insert("arguments".into(), self.arguments.as_str().into());
        let mut call = self.extras.clone();
        call.insert("id".into(), self.id.as_str().into());
        call.insert("type".into(), "function".into());
        call.insert("function".into(), function.into());
        call.serialize(serializer)
    }
}

impl Serialize for ToolDeclaration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let function = json!({ "name": self.name, "description": self.description, "parameters": self.parameters });
        json!({ "type": "function", "function": function }).serialize(serializer)
    }
}
