//! Support for the unit tests of this crate: an ingress over embedded backends that fail on
//! request, and shared values.

mod world;

pub(crate) use world::{ADMIN_TOKEN, Answer, World, backends::put_conversation, reply_of};

use switchboard_schemas::{
    conversation::{FinishReason, ReplyStatus, TokenUsage},
    ids::{AgentId, ConversationId, MessageId, OrgId},
    reply_event::{Frame, FrameBody, ReplyEnd, ReplyHead},
    secret::InstallationSecret,
};

use crate::metrics::IngressMetrics;

pub(crate) fn secret() -> InstallationSecret {
    InstallationSecret::from_bytes([7; 32])
}

pub(crate) fn org_id() -> OrgId {
    OrgId::derive(&secret(), "acme")
}

/// Returns the admin path of a resource of the organization.
pub(crate) fn org_path(rest: &str) -> String {
    format!("/api/admin/organizations/{}{rest}", org_id())
}

pub(crate) fn agent_id() -> AgentId {
    AgentId::derive(&secret(), &org_id(), "shop")
}

pub(crate) fn message_id() -> MessageId {
    let digits = "0".repeat(26);
    format!("msg_{digits}{digits}").parse().unwrap()
}

pub(crate) fn metrics() -> IngressMetrics {
    IngressMetrics::register(&prometheus::Registry::new()).unwrap()
}

pub(crate) fn head() -> ReplyHead {
    ReplyHead {
        conversation_id: ConversationId::of_agent(&org_id(), &agent_id(), &"s".parse().unwrap()),
        agent_id: agent_id(),
        agent_name: "Shop".into(),
        routing_reason: None,
        model: "demo".into(),
        ui_spec: None,
    }
}

/// Returns the frames of a complete reply of generation 1: head, one frame for each part, end.
pub(crate) fn reply_frames(parts: &[&str], status: ReplyStatus) -> Vec<Frame> {
    let mut bodies = vec![FrameBody::Head(Box::new(head()))];
    let mut offset = 0;
    for part in parts {
        bodies.push(FrameBody::Text {
            offset,
            text: (*part).to_owned().into(),
        });
        offset += part.len() as u64;
    }
    bodies.push(FrameBody::End(Box::new(end_of(&parts.concat(), status))));
    let numbered = bodies.into_iter().zip(1..);
    numbered
        .map(|(body, seq)| Frame {
            attempt: 1,
            generation: 1,
            seq,
            body,
        })
        .collect()
}

pub(crate) fn end_of(text: &str, status: ReplyStatus) -> ReplyEnd {
    use sha2::{Digest, Sha256};
    ReplyEnd {
        status,
        finish_reason: Some(FinishReason::Stop),
        usage: TokenUsage::default(),
        length: text.len() as u64,
        sha256: Sha256::digest(text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        response_time_ms: 5,
        failure: None,
        provider_error: None,
    }
}
