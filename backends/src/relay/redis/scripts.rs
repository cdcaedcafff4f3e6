//! The Lua scripts of the relay. Each is one round trip, and the clock is that of Redis.

use redis::{Script, ScriptInvocation};
use switchboard_schemas::{
    ids::{ConversationId, MessageId},
    reply_event::{Frame, IngressEnvelope},
    time::whole_millis,
};

use crate::{
    redis_link::RedisLink,
    relay::{
        ABSENT_MEMBERS_MAX, ATTEMPTS_MAX, ClaimToken, DONE_LOG_TTL, FINAL_STATE_TTL, LEASE,
        LOG_TTL, MESSAGE_COUNT_TTL, QUEUE_SLOT_TTL, ROUND_ROBIN_TTL, ROUTING_DECISION_TTL,
    },
};

/// Prefix of the fields of a conversation that hold a queue slot; the key of the reply follows.
pub(super) const SLOT_FIELD_PREFIX: &str = "place:";
/// Last characters of a reply's id in the key of its tombstone.
const TOMBSTONE_ID_CHARS: usize = 11;
const COMMON: &str = include_str!("common.lua");

/// The scripts of the relay, loaded once.
pub(super) struct RelayScripts {
    pub(super) claim: Script,
    pub(super) append: Script,
    pub(super) restore: Script,
    pub(super) finalize: Script,
    pub(super) complete: Script,
    pub(super) release: Script,
    pub(super) cancel: Script,
    pub(super) remaining_lease: Script,
    pub(super) void: Script,
    pub(super) reserve_slot: Script,
    pub(super) get_or_insert: Script,
    pub(super) record_decision: Script,
    pub(super) choose_round_robin: Script,
    pub(super) state_age: Script,
}

impl RelayScripts {
    pub(super) fn new() -> Self {
        Self {
            claim: reply_script(include_str!("claim.lua")),
            append: reply_script(include_str!("append.lua")),
            restore: reply_script(include_str!("restore.lua")),
            finalize: reply_script(include_str!("finalize.lua")),
            complete: reply_script(include_str!("complete.lua")),
            release: reply_script(include_str!("release.lua")),
            cancel: reply_script(include_str!("cancel.lua")),
            remaining_lease: reply_script(include_str!("remaining_lease.lua")),
            void: reply_script(include_str!("void_publish.lua")),
            reserve_slot: reply_script(include_str!("reserve_slot.lua")),
            get_or_insert: standalone_script(include_str!("get_or_insert.lua")),
            record_decision: standalone_script(include_str!("record_decision.lua")),
            choose_round_robin: standalone_script(include_str!("choose_round_robin.lua")),
            state_age: Script::new(include_str!("state_age.lua")),
        }
    }
}

/// Returns the key of the stream with a reply's frames.
pub(super) fn log_key(link: &RedisLink, reply: &MessageId) -> String {
    // The braces are the hash tag: everything of one conversation lives on one node of a Redis
    // Cluster.
    link.key(&format!("{{{}}}:log:{reply}", reply.conversation()))
}

/// Returns the key of the tombstone of a reply. Tombstones are most of what Redis keeps. The key
/// has only 55 random bits of the reply's id, which are enough within one conversation, so that it
/// fits into 48 bytes.
pub(super) fn tombstone_key(link: &RedisLink, reply: &MessageId) -> String {
    let id = reply.as_str();
    let suffix = &id[id.len() - TOMBSTONE_ID_CHARS..];
    link.key(&format!("{{{}}}{suffix}", reply.conversation()))
}

/// Returns the key of the hash with a conversation's claim and queue slots.
pub(super) fn conversation_key(link: &RedisLink, conversation: &ConversationId) -> String {
    link.key(&format!("{{{conversation}}}:conversation"))
}

/// Prepares a call of `script` on the keys of `reply`.
pub(super) fn call_on_reply<'a>(
    script: &'a Script,
    link: &RedisLink,
    reply: &MessageId,
) -> ScriptInvocation<'a> {
    let conversation = reply.conversation();
    let mut call = script.key(conversation_key(link, &conversation));
    call.key(link.key(&format!("{{{conversation}}}:reply:{reply}")))
        .key(log_key(link, reply))
        .key(tombstone_key(link, reply));
    call
}

/// Prepares a call of `script` with the token as the first two arguments.
pub(super) fn call_with_token<'a>(
    script: &'a Script,
    link: &RedisLink,
    token: &ClaimToken,
) -> ScriptInvocation<'a> {
    let mut call = call_on_reply(script, link, &token.reply_id);
    call.arg(token.attempt).arg(token.nonce.to_string());
    call
}

/// Adds the channel that frames are pushed to (empty for none) and the address that precedes each
/// frame.
pub(super) fn add_push_target(
    call: &mut ScriptInvocation<'_>,
    channel: Option<String>,
    reply: &MessageId,
) {
    call.arg(channel.unwrap_or_default())
        .arg(&IngressEnvelope::encode_address(reply)[..]);
}

/// Adds a frame as three arguments.
pub(super) fn add_frame(call: &mut ScriptInvocation<'_>, frame: &Frame) {
    call.arg(frame.generation)
        .arg(frame.seq)
        .arg(&frame.encode()[..]);
}

fn reply_script(body: &str) -> Script {
    Script::new(&[&constants(), COMMON, body].concat())
}

/// Creates a script that works on no reply.
fn standalone_script(body: &str) -> Script {
    Script::new(&[&constants(), body].concat())
}

fn constants() -> String {
    format!(
        "local LEASE_MS, LOG_TTL_MS, KEEP_MS, PLACE_MS, ATTEMPTS_MAX = {}, {}, {}, {}, {ATTEMPTS_MAX}\n\
         local DONE_LOG_TTL_MS, COUNT_TTL_MS, DECISION_TTL_MS = {}, {}, {}\n\
         local ROTATION_MS, ABSENT_MEMBERS_MAX = {}, {ABSENT_MEMBERS_MAX}\n\
         local PLACE = '{SLOT_FIELD_PREFIX}'\n",
        whole_millis(LEASE),
        whole_millis(LOG_TTL),
        whole_millis(FINAL_STATE_TTL),
        whole_millis(QUEUE_SLOT_TTL),
        whole_millis(DONE_LOG_TTL),
        whole_millis(MESSAGE_COUNT_TTL),
        whole_millis(ROUTING_DECISION_TTL),
        whole_millis(ROUND_ROBIN_TTL),
    )
}
