//! Descriptions of ids that name nothing. They depend on the form of the id alone, so that they do
//! not reveal which ids exist.

use switchboard_schemas::ids::{
    AgentId, ConversationId, ErasureId, KeyId, MessageId, OrgId, ProviderId, TeamId, UserId,
};

/// The names of all kinds of resources and the prefixes of their ids.
const KINDS: [(&str, &str); 9] = [
    ("agent", AgentId::PREFIX),
    ("team", TeamId::PREFIX),
    ("message", MessageId::PREFIX),
    ("conversation", ConversationId::PREFIX),
    ("organization", OrgId::PREFIX),
    ("key", KeyId::PREFIX),
    ("provider", ProviderId::PREFIX),
    ("user", UserId::PREFIX),
    ("erasure", ErasureId::PREFIX),
];
/// The paths of the public API, by the kind of their id.
const PUBLIC_PATHS: [(&str, &str); 3] = [
    ("agent", "/api/public/agents/{agentId}/…"),
    ("team", "/api/public/teams/{teamId}/chat"),
    ("message", "/api/public/messages/{messageId}"),
];

/// Returns the description of an id that names no resource of this kind in the public API.
pub(crate) fn no_public(kind: &str, id: &str) -> String {
    let given = kind_of(id).filter(|given| *given != kind);
    let mut paths = PUBLIC_PATHS.iter();
    match given.and_then(|given| paths.find(|(kind, _)| *kind == given)) {
        Some((_, path)) => format!("{}; use {path}", describe(kind, id)),
        None => describe(kind, id),
    }
}

/// Returns the description of an id that names no resource of this kind.
pub(crate) fn describe(kind: &str, id: &str) -> String {
    let mut kinds = KINDS.iter();
    match (kind_of(id), kinds.find(|(name, _)| *name == kind)) {
        (Some(given), _) if given != kind => format!("this is the id of {}", with_article(given)),
        (None, Some((_, prefix))) => {
            format!("no {kind} has this id; ids of {kind}s begin with {prefix}")
        }
        _ => format!("no {kind} has this id"),
    }
}

fn kind_of(id: &str) -> Option<&'static str> {
    let mut kinds = KINDS.iter();
    let kind = kinds.find(|(_, prefix)| id.starts_with(prefix));
    kind.map(|(name, _)| *name)
}

fn with_article(kind: &str) -> String {
    let is_vowel = kind.starts_with(['a', 'e', 'i', 'o']);
    format!("{} {kind}", if is_vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_another_kind_is_directed_to_its_path() {
        for (kind, id, expected) in [
            ("agent", "agt_1", "no agent has this id"),
            (
                "agent",
                "team_7",
                "this is the id of a team; use /api/public/teams/{teamId}/chat",
            ),
            (
                "agent",
                "shop",
                "no agent has this id; ids of agents begin with agt_",
            ),
            ("agent", "conv_7", "this is the id of a conversation"),
            (
                "team",
                "agt_1",
                "this is the id of an agent; use /api/public/agents/{agentId}/…",
            ),
            ("message", "key_1", "this is the id of a key"),
        ] {
            assert_eq!(no_public(kind, id), expected);
        }
    }
}
