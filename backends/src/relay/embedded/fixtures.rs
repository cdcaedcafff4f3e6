//! Frames of an embedded relay written directly, for tests without workers.

use switchboard_schemas::{
    ids::{IngressId, MessageId},
    reply_event::{Frame, IngressEnvelope},
};

use super::EmbeddedRelay;

/// Logs a frame of a reply without a claim and pushes it to `push_to`.
pub fn put_frame(
    relay: &EmbeddedRelay,
    reply_id: &MessageId,
    frame: &Frame,
    push_to: Option<&IngressId>,
) {
    relay.with_claims(reply_id, |claims, now| {
        claims.put_frame(now, reply_id, frame);
    });
    relay.push_frame(push_to, reply_id, frame);
}

/// Pushes an envelope to an ingress.
pub fn push_envelope(relay: &EmbeddedRelay, push_to: &IngressId, envelope: IngressEnvelope) {
    relay.deliver(Some(push_to), || envelope);
}
