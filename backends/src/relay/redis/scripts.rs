//! The scripts of the claim table, each one round trip; time is Redis's own.

use redis::{Script, ScriptInvocation};
use switchboard_schemas::{
    ids::MessageId,
    reply_event::{Frame, IngressEnvelope},
};

use crate::{
    redis_link::RedisLink,
    relay::{
        ABSENT_MEMBERS_MAX, ATTEMPTS_MAX, ClaimToken, FINAL_STATE_TTL, LEASE, LOG_TTL,
        QUEUE_SLOT_TTL, ROUND_ROBIN_TTL, millis,
    },
};

const COMMON: &str = include_str!("common.lua");

/// One script for each step of a reply, and for what is remembered beside replies.
pub(super) struct Scripts {
    pub(super) claim: Script,
    pub(super) append: Script,
    pub(super) restore: Script,
    pub(super) seal: Script,
    pub(super) settle: Script,
    pub(super) release: Script,
    pub(super) cancel: Script,
    pub(super) void: Script,
    pub(super) enqueue: Script,
    pub(super) remember: Script,
    pub(super) decide: Script,
    pub(super) decide_in_turn: Script,
    pub(super) memory_age: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            claim: script(include_str!("claim.lua")),
            append: script(include_str!("append.lua")),
            restore: script(include_str!("restore.lua")),
            seal: script(include_str!("finalize.lua")),
            settle: script(include_str!("complete.lua")),
            release: script(include_str!("release.lua")),
            cancel: script(include_str!("cancel.lua")),
            void: script(include_str!("void.lua")),
            enqueue: script(include_str!("enqueue.lua")),
            remember: alone(include_str!("remember.lua")),
            decide: alone(include_str!("decide.lua")),
            decide_in_turn: alone(include_str!("decide_round_robin.lua")),
            memory_age: Script::new(include_str!("memory_age.lua")),
        }
    }
}

/// The stream of a reply's frames.
pub(super) fn log_key(link: &RedisLink, reply: &MessageId) -> String {
    // The braces are the hash tag: everything of one conversation lives on one node of a Redis Cluster.
    link.key(&format!("{{{}}}:log:{reply}", reply.conversation()))
}

/// A call of `script` on the keys of `reply`.
pub(super) fn on_reply<'a>(
    script: &'a Script,
    link: &RedisLink,
    reply: &MessageId,
) -> ScriptInvocation<'a> {
    let conversation = reply.conversation();
    let mut call = script.key(link.key(&format!("{{{conversation}}}:conversation")));
    call.key(link.key(&format!("{{{conversation}}}:reply:{reply}")))
        .key(log_key(link, reply));
    call
}

/// The same, with the token as the first two arguments.
pub(super) fn with_token<'a>(
    script: &'a Script,
    link: &RedisLink,
    token: &ClaimToken,
) -> ScriptInvocation<'a> {
    let mut call = on_reply(script, link, &token.reply_id);
    call.arg(token.attempt).arg(token.nonce.to_string());
    call
}

/// The channel that frames are pushed to, none when empty, and what stands before each of them.
pub(super) fn push_target(
    call: &mut ScriptInvocation<'_>,
    channel: Option<String>,
    reply: &MessageId,
) {
    call.arg(channel.unwrap_or_default())
        .arg(&IngressEnvelope::encode_address(reply)[..]);
}

/// A frame as three arguments.
pub(super) fn frame_args(call: &mut ScriptInvocation<'_>, frame: &Frame) {
    call.arg(frame.generation)
        .arg(frame.seq)
        .arg(&frame.encode()[..]);
}

fn script(body: &str) -> Script {
    Script::new(&[&bounds(), COMMON, body].concat())
}

/// A script that works on no reply.
fn alone(body: &str) -> Script {
    Script::new(&[&bounds(), body].concat())
}

fn bounds() -> String {
    format!(
        "local LEASE_MS, LOG_TTL_MS, KEEP_MS, PLACE_MS, ATTEMPTS_MAX = {}, {}, {}, {}, {ATTEMPTS_MAX}\n\
         local ROTATION_MS, ABSENT_MEMBERS_MAX = {}, {ABSENT_MEMBERS_MAX}\n",
        millis(LEASE),
        millis(LOG_TTL),
        millis(FINAL_STATE_TTL),
        millis(QUEUE_SLOT_TTL),
        millis(ROUND_ROBIN_TTL),
    )
}
