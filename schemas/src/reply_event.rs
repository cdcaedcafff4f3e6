//! Frames of a reply on their way from a worker to the waiting connection, as length-prefixed
//! bytes.
//!
//! A reply has hundreds of chunks, and each passes here; only head and end contain JSON. A text
//! frame contains its byte offset, so that a reader can tell a repeat from a gap without counting
//! frames. Texts of two generations are never concatenated.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::{
    conversation::{FinishReason, ReplyStatus, TokenUsage},
    ids::{AgentId, ConversationId, EventId, MessageId, OrgId},
    playground::PlaygroundRouting,
    provider::ProviderError,
};

/// Version of the byte layout.
const LAYOUT_VERSION: u8 = 1;
/// Size of the header: version, kind, attempt, generation, sequence number, offset.
const FRAME_HEADER_BYTES: usize = 1 + 1 + 4 + 4 + 8 + 8;
/// Maximum size of a frame. A reply has at most 256 KiB of text by default, and a snapshot contains
/// all of it.
pub const FRAME_BYTES_MAX: usize = 4 << 20;

/// One entry of a reply log.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Attempt that wrote the frame.
    pub attempt: u32,
    /// Generation of the text.
    pub generation: u32,
    /// Position in the reply log, rising from 1 within a generation.
    pub seq: u64,
    /// Content of the frame.
    pub body: FrameBody,
}

/// The content of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBody {
    /// The start of a reply, with the data of the response headers. Its user message is stored.
    Head(Box<ReplyHead>),
    /// A chunk of text in whole characters.
    Text {
        /// Byte offset of `text` in the reply.
        offset: u64,
        /// UTF-8 bytes of the text.
        text: Bytes,
    },
    /// Structured data that was found after the head.
    Ui(Value),
    /// Progress of a tool call.
    Tool(ToolProgress),
    /// The final state of the reply, which is stored.
    End(Box<ReplyEnd>),
}

/// The start of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyHead {
    /// Conversation of the reply.
    pub conversation_id: ConversationId,
    /// Agent that replies.
    pub agent_id: AgentId,
    /// Name of the agent.
    pub agent_name: String,
    /// Reason for the choice of the agent, for a team's message.
    pub routing_reason: Option<String>,
    /// Model that generates the reply.
    pub model: String,
    /// Structured data to show with the reply.
    pub ui_spec: Option<Value>,
}

/// The progress of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolProgress {
    /// Name of the called tool.
    pub name: String,
    /// State of the tool call.
    pub status: ToolStatus,
}

/// The state of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// The call is running.
    Started,
    /// The call returned a result.
    Finished,
    /// The call returned no result.
    Failed,
}

/// The end of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyEnd {
    /// Final state of the reply.
    pub status: ReplyStatus,
    /// Finish reason reported by the provider.
    pub finish_reason: Option<FinishReason>,
    /// Tokens read and generated.
    pub usage: TokenUsage,
    /// Length of the whole text, in bytes.
    pub length: u64,
    /// SHA-256 of the whole text in hexadecimal. The ingress compares it with the text that it
    /// sent.
    pub sha256: String,
    /// Milliseconds from acceptance to the end.
    pub response_time_ms: u64,
    /// Reason why there is no complete text.
    pub failure: Option<ReplyFailure>,
    /// Error of the provider, if its response is the reason. Not for visitors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_error: Option<ProviderError>,
}

/// The reason why a reply failed, named like the error codes of the public API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFailure {
    /// The provider rejected the request or sent an invalid response.
    ModelError,
    /// Neither the provider nor its fallback can be reached, or both are overloaded.
    ModelUnavailable,
    /// The provider did not respond in time.
    ModelTimeout,
    /// The turn did not start or end in time.
    DeadlineExceeded,
    /// Every attempt failed or died.
    AttemptsExhausted,
    /// The agent was removed or may no longer answer.
    AgentUnavailable,
    /// No member of the team can answer.
    NoRoute,
    /// The service itself failed.
    Internal,
}

/// A signal about one reply to the connections that wait for it.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplySignal {
    /// The job of the reply waits in the queue. It is encoded as the heartbeat of attempt 0.
    Waiting,
    /// An attempt is running and has no new frame. It is not logged.
    Heartbeat {
        /// Number of the attempt, counted from 1.
        attempt: u32,
    },
    /// A frame of the reply log.
    Frame(Frame),
}

/// A message on the channel of an ingress process.
#[derive(Clone, Debug, PartialEq)]
pub enum IngressEnvelope {
    /// A signal about a reply.
    Reply(MessageId, ReplySignal),
    /// The outcome of a metadata change.
    Patch(EventId, PatchOutcome),
    /// Routing result of a team's playground run.
    Playground(MessageId, PlaygroundRouting),
    /// So many messages of the organization wait that a worker will soon read no others.
    Crowded(OrgId),
}

/// The outcome of a metadata change or a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchOutcome {
    /// The change is stored and will be published to analytics.
    Applied,
    /// The conversation does not exist.
    NotFound,
}

/// The error for bytes that are not a frame or an envelope; they are counted and dropped.
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
const CROWDED: u8 = 3;

impl ReplyEnd {
    /// Creates the end of a reply that was cancelled before anything of it was generated.
    #[must_use]
    pub fn cancelled_in_queue(response_time_ms: u64) -> Self {
        Self {
            status: ReplyStatus::Cancelled,
            finish_reason: Some(FinishReason::Cancelled),
            usage: TokenUsage::default(),
            length: 0,
            sha256: HEXLOWER.encode(&Sha256::digest(b"")),
            response_time_ms,
            failure: None,
            provider_error: None,
        }
    }
}

impl Frame {
    /// Creates the only frame of a reply that ends before any attempt.
    #[must_use]
    pub fn only(end: ReplyEnd) -> Self {
        Self {
            attempt: 1,
            generation: 1,
            seq: 1,
            body: FrameBody::End(Box::new(end)),
        }
    }

    /// Encodes the frame.
    pub fn encode(&self) -> Bytes {
        let (kind, offset, body) = match &self.body {
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

    /// Decodes a frame. Text that is not UTF-8 is malformed.
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

impl ReplySignal {
    /// Encodes the signal in the layout of a frame.
    pub fn encode(&self) -> Bytes {
        let attempt = match self {
            Self::Frame(frame) => return frame.encode(),
            Self::Waiting => 0,
            Self::Heartbeat { attempt } => *attempt,
        };
        let mut bytes = BytesMut::zeroed(FRAME_HEADER_BYTES);
        let mut header = &mut bytes[..];
        header.put_u8(LAYOUT_VERSION);
        header.put_u8(HEARTBEAT);
        header.put_u32(attempt);
        bytes.freeze()
    }

    fn decode(bytes: Bytes) -> Result<Self, MalformedFrame> {
        if bytes.get(1) != Some(&HEARTBEAT) {
            return Frame::decode(bytes).map(Self::Frame);
        }
        let mut header = &bytes[..];
        if header.len() < FRAME_HEADER_BYTES || header.get_u8() != LAYOUT_VERSION {
            return Err(MalformedFrame);
        }
        header.advance(1);
        Ok(match header.get_u32() {
            0 => Self::Waiting,
            attempt => Self::Heartbeat { attempt },
        })
    }
}

impl IngressEnvelope {
    /// Encodes the header that precedes a frame on a channel: kind, length of the address, address.
    pub fn encode_address(message_id: &MessageId) -> Bytes {
        address(REPLY, message_id.as_str())
    }

    /// Encodes the envelope.
    pub fn encode(&self) -> Bytes {
        let (head, body) = match self {
            Self::Reply(id, signal) => (address(REPLY, id.as_str()), signal.encode()),
            Self::Patch(id, outcome) => (address(PATCH, id.as_str()), json(outcome)),
            Self::Playground(id, routing) => (address(PLAYGROUND, id.as_str()), json(routing)),
            Self::Crowded(org) => (address(CROWDED, org.as_str()), Bytes::new()),
        };
        [head, body].concat().into()
    }

    /// Decodes an envelope.
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
            REPLY => Ok(Self::Reply(id_in(address)?, ReplySignal::decode(bytes)?)),
            PATCH => Ok(Self::Patch(id_in(address)?, parse(&bytes)?)),
            PLAYGROUND => Ok(Self::Playground(id_in(address)?, parse(&bytes)?)),
            CROWDED => Ok(Self::Crowded(id_in(address)?)),
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

fn id_in<T: std::str::FromStr>(address: &str) -> Result<T, MalformedFrame> {
    address.parse().map_err(|_| MalformedFrame)
}

/// Serializes a value. Types with string keys and finite numbers always serialize.
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
            provider_error: None,
        }
    }

    fn message() -> MessageId {
        format!("msg_{}{}", "0".repeat(26), "1".repeat(26))
            .parse()
            .unwrap()
    }

    #[test]
    fn frames_of_each_kind_round_trip() {
        let bodies = [
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
            let envelope = IngressEnvelope::Reply(message(), ReplySignal::Frame(frame));
            assert_eq!(
                IngressEnvelope::decode(envelope.encode()).unwrap(),
                envelope
            );
        }
    }

    #[test]
    fn address_followed_by_a_frame_is_an_envelope() {
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
            IngressEnvelope::Reply(message(), ReplySignal::Frame(frame))
        );
    }

    #[test]
    fn signals_without_a_frame_survive_their_bytes() {
        for (signal, attempt) in [
            (ReplySignal::Waiting, 0),
            (
                ReplySignal::Heartbeat {
                    attempt: 0x0102_0304,
                },
                0x0102_0304_u32,
            ),
        ] {
            let mut expected = vec![LAYOUT_VERSION, HEARTBEAT];
            expected.extend(attempt.to_be_bytes());
            expected.resize(FRAME_HEADER_BYTES, 0);
            assert_eq!(signal.encode(), expected);
            let envelope = IngressEnvelope::Reply(message(), signal);
            assert_eq!(
                IngressEnvelope::decode(envelope.encode()).unwrap(),
                envelope
            );
        }
    }

    #[test]
    fn heartbeat_is_no_frame_of_a_log() {
        let bytes = ReplySignal::Heartbeat { attempt: 1 }.encode();
        assert_eq!(Frame::decode(bytes), Err(MalformedFrame));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = IngressEnvelope::decode(bytes.clone().into());
            let _ = Frame::decode(bytes.into());
        }

        #[test]
        fn text_cut_inside_a_character_is_rejected(prefix in "[a-z]{0,8}") {
            let mut text = prefix.into_bytes();
            text.push(0xc3);
            let frame = Frame { attempt: 1, generation: 1, seq: 1, body: FrameBody::Text { offset: 0, text: text.into() } };
            prop_assert_eq!(Frame::decode(frame.encode()), Err(MalformedFrame));
        }
    }
}
