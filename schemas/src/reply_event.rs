//! The reply on its way from a worker to the connection that waits (step 8 of the path): length-prefixed bytes,
//! because a reply has hundreds of chunks and each passes here; only its two ends carry JSON.
//!
//! A text frame says where its bytes begin, so that a reader can tell a repeat from a gap without counting frames.
//! Bytes of two generations are never joined.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    conversation::{FinishReason, ReplyStatus, TokenUsage},
    ids::{AgentId, ConversationId, EventId, MessageId},
    playground::PlaygroundRouting,
};

/// Version of the byte layout.
const LAYOUT_VERSION: u8 = 1;
/// Version, kind, attempt, generation, sequence number, offset.
const FRAME_HEADER_BYTES: usize = 1 + 1 + 4 + 4 + 8 + 8;
/// Largest frame that is read; a reply has at most 64 KiB of text by default, a snapshot holds all of it.
pub const FRAME_BYTES_MAX: usize = 4 << 20;

/// One step of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The attempt that wrote it.
    pub attempt: u32,
    /// The text that it belongs to.
    pub generation: u32,
    /// Place in the reply's log, rising from 1 within a generation; 0 for beats, which are not logged.
    pub seq: u64,
    /// What it says.
    pub body: FrameBody,
}

/// What a frame says.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBody {
    /// Sign that the worker is alive.
    Heartbeat,
    /// The reply begins: what the client's headers need. Its user message is stored.
    Head(Box<ReplyHead>),
    /// Text, whole characters only, beginning at this byte of the reply.
    Text {
        /// Byte of the reply at which `text` begins.
        offset: u64,
        /// The bytes.
        text: Bytes,
    },
    /// Structured data that was found after the head.
    Ui(Value),
    /// A tool call's progress.
    Tool(ToolProgress),
    /// The reply has its final state, and it is stored.
    End(Box<ReplyEnd>),
}

/// The beginning of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyHead {
    /// Conversation.
    pub conversation_id: ConversationId,
    /// Who answers.
    pub agent_id: AgentId,
    /// Its name.
    pub agent_name: String,
    /// Why it, for a team's message.
    pub routing_reason: Option<String>,
    /// The model.
    pub model: String,
    /// Structured data to show.
    pub ui_spec: Option<Value>,
}

/// Progress of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolProgress {
    /// Name of the tool.
    pub name: String,
    /// How far it is.
    pub status: ToolStatus,
}

/// How far a tool call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// Running.
    Started,
    /// Gave its result.
    Finished,
    /// Gave none.
    Failed,
}

/// The end of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyEnd {
    /// Final state.
    pub status: ReplyStatus,
    /// What the provider said of the end.
    pub finish_reason: Option<FinishReason>,
    /// Tokens used.
    pub usage: TokenUsage,
    /// Bytes of the whole text.
    pub length: u64,
    /// SHA-256 of the whole text in hexadecimal, which the ingress compares with what it sent.
    pub sha256: String,
    /// Milliseconds from acceptance to the end.
    pub response_time_ms: u64,
    /// Why there is no complete text.
    pub failure: Option<ReplyFailure>,
}

/// Why a reply failed, in the words of the public API's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFailure {
    /// The provider refused, or sent what is no answer.
    ModelError,
    /// Neither the provider nor its fallback can be reached, or both are overloaded.
    ModelUnavailable,
    /// The provider stayed silent.
    ModelTimeout,
    /// The turn did not begin, or end, in its time.
    DeadlineExceeded,
    /// Every attempt died.
    AttemptsExhausted,
    /// The agent is gone or may no longer answer.
    AgentUnavailable,
    /// No member of the team can answer.
    NoRoute,
    /// A fault of ours.
    Internal,
}

/// A message on an ingress process's channel.
#[derive(Clone, Debug, PartialEq)]
pub enum IngressEnvelope {
    /// A step of a reply.
    Reply(MessageId, Frame),
    /// The outcome of a change of metadata.
    Patch(EventId, PatchOutcome),
    /// Routing result of a team's playground run.
    Playground(MessageId, PlaygroundRouting),
}

/// What became of a change of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchOutcome {
    /// Stored, and on its way to analytics.
    Applied,
    /// There is no such conversation.
    NotFound,
}

/// Bytes that are no frame or no envelope; they are counted and dropped.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("malformed reply frame")]
pub struct MalformedFrame;

const HEARTBEAT: u8 = 0;
const HEAD: u8 = 1;
const TEXT: u8 = 2;
const UI: u8 = 3;
const TOOL: u8 = 4;
const END: u8 = 5;

const REPLY: u8 = 0;
const PATCH: u8 = 1;
const PLAYGROUND: u8 = 2;

impl Frame {
    /// The frame as bytes.
    pub fn encode(&self) -> Bytes {
        let (kind, offset, body) = match &self.body {
            FrameBody::Heartbeat => (HEARTBEAT, 0, Bytes::new()),
            FrameBody::Head(head) => (HEAD, 0, json(head)),
            FrameBody::Text { offset, text } => (TEXT, *offset, text.clone()),
            FrameBody::Ui(spec) => (UI, 0, json(spec)),
            FrameBody::Tool(progress) => (TOOL, 0, json(progress)),
            FrameBody::End(end) => (END, 0, json(end)),
        };
        let mut bytes = BytesMut::with_capacity(FRAME_HEADER_BYTES + body.len());
        bytes.put_u8(LAYOUT_VERSION);
        bytes.put_u8(kind);
        bytes.put_u32(self.attempt);
        bytes.put_u32(self.generation);
        bytes.put_u64(self.seq);
        bytes.put_u64(offset);
        bytes.put(body);
        bytes.freeze()
    }

    /// Reads a frame; text that is not UTF-8 is none.
    pub fn decode(mut bytes: Bytes) -> Result<Self, MalformedFrame> {
        if bytes.len() < FRAME_HEADER_BYTES
            || bytes.len() > FRAME_BYTES_MAX
            || bytes.get_u8() != LAYOUT_VERSION
        {
            return Err(MalformedFrame);
        }
        let kind = bytes.get_u8();
        let (attempt, generation) = (bytes.get_u32(), bytes.get_u32());
        let (seq, offset) = (bytes.get_u64(), bytes.get_u64());
        let body = match kind {
            HEARTBEAT => FrameBody::Heartbeat,
            HEAD => FrameBody::Head(parse(&bytes)?),
            TEXT if std::str::from_utf8(&bytes).is_ok() => FrameBody::Text {
                offset,
                text: bytes,
            },
            UI => FrameBody::Ui(parse(&bytes)?),
            TOOL => FrameBody::Tool(parse(&bytes)?),
            END => FrameBody::End(parse(&bytes)?),
            _ => return Err(MalformedFrame),
        };
        Ok(Self {
            attempt,
            generation,
            seq,
            body,
        })
    }
}

impl IngressEnvelope {
    /// What stands before the frame on a channel: kind, length of the address, address.
    pub fn encode_address(message_id: &MessageId) -> Bytes {
        address(REPLY, message_id.as_str())
    }

    /// The envelope as bytes.
    pub fn encode(&self) -> Bytes {
        let (head, body) = match self {
            Self::Reply(id, frame) => (address(REPLY, id.as_str()), frame.encode()),
            Self::Patch(id, outcome) => (address(PATCH, id.as_str()), json(outcome)),
            Self::Playground(id, routing) => (address(PLAYGROUND, id.as_str()), json(routing)),
        };
        [head, body].concat().into()
    }

    /// Reads an envelope.
    pub fn decode(mut bytes: Bytes) -> Result<Self, MalformedFrame> {
        if bytes.len() < 2 {
            return Err(MalformedFrame);
        }
        let kind = bytes.get_u8();
        let length = usize::from(bytes.get_u8());
        if bytes.len() < length {
            return Err(MalformedFrame);
        }
        let address = bytes.split_to(length);
        let address = std::str::from_utf8(&address).map_err(|_| MalformedFrame)?;
        match kind {
            REPLY => Ok(Self::Reply(
                address.parse().map_err(|_| MalformedFrame)?,
                Frame::decode(bytes)?,
            )),
            PATCH => Ok(Self::Patch(
                address.parse().map_err(|_| MalformedFrame)?,
                parse(&bytes)?,
            )),
            PLAYGROUND => Ok(Self::Playground(
                address.parse().map_err(|_| MalformedFrame)?,
                parse(&bytes)?,
            )),
            _ => Err(MalformedFrame),
        }
    }
}

fn address(kind: u8, address: &str) -> Bytes {
    let mut bytes = BytesMut::with_capacity(2 + address.len());
    bytes.put_u8(kind);
    // Ids have at most 64 characters.
    bytes.put_u8(u8::try_from(address.len()).unwrap_or(u8::MAX));
    bytes.put_slice(address.as_bytes());
    bytes.freeze()
}

/// Our own types, with string keys and finite numbers, always serialize.
fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &Bytes) -> Result<T, MalformedFrame> {
    serde_json::from_slice(bytes).map_err(|_| MalformedFrame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn end() -> ReplyEnd {
        ReplyEnd {
            status: ReplyStatus::Completed,
            finish_reason: Some(FinishReason::Stop),
            usage: TokenUsage {
                prompt_tokens: 3,
                completion_tokens: 4,
                estimated: false,
            },
            length: 5,
            sha256: "00".into(),
            response_time_ms: 6,
            failure: None,
        }
    }

    fn message() -> MessageId {
        format!("msg_{}{}", "0".repeat(26), "1".repeat(26))
            .parse()
            .unwrap()
    }

    #[test]
    fn each_kind_of_frame_survives_its_bytes() {
        let bodies = [
            FrameBody::Heartbeat,
            FrameBody::Text {
                offset: 7,
                text: "héllo".into(),
            },
            FrameBody::Ui(serde_json::json!({"type": "product-grid"})),
            FrameBody::Tool(ToolProgress {
                name: "search".into(),
                status: ToolStatus::Finished,
            }),
            FrameBody::End(Box::new(end())),
        ];
        for body in bodies {
            let frame = Frame {
                attempt: 2,
                generation: 9,
                seq: 3,
                body,
            };
            assert_eq!(Frame::decode(frame.encode()).unwrap(), frame);
            let envelope = IngressEnvelope::Reply(message(), frame);
            assert_eq!(
                IngressEnvelope::decode(envelope.encode()).unwrap(),
                envelope
            );
        }
    }

    #[test]
    fn an_address_and_a_frame_make_an_envelope() {
        let frame = Frame {
            attempt: 1,
            generation: 1,
            seq: 1,
            body: FrameBody::Text {
                offset: 0,
                text: "a".into(),
            },
        };
        let joined = [IngressEnvelope::encode_address(&message()), frame.encode()].concat();
        assert_eq!(
            IngressEnvelope::decode(joined.into()).unwrap(),
            IngressEnvelope::Reply(message(), frame)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_without_a_panic(bytes: Vec<u8>) {
            let _ = IngressEnvelope::decode(bytes.clone().into());
            let _ = Frame::decode(bytes.into());
        }

        #[test]
        fn text_that_is_cut_inside_a_character_is_refused(prefix in "[a-z]{0,8}") {
            let mut text = prefix.into_bytes();
            text.push(0xc3);
            let frame = Frame { attempt: 1, generation: 1, seq: 1, body: FrameBody::Text { offset: 0, text: text.into() } };
            prop_assert_eq!(Frame::decode(frame.encode()), Err(MalformedFrame));
        }
    }
}
