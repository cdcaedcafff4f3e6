//! Descriptions of ids that name nothing. They depend on the form of the id alone, so that they do
//! not reveal which ids exist.

use switchboard_schemas::ids::{AgentId, ConversationId, KeyId, MessageId, OrgId, TeamId};

/// A kind of resource with public ids: its name, the prefix of its ids, and its path.
type IdKind = (&'static str, &'static str, &'static str);

const AGENT: IdKind = (
    "an agent",
    AgentId::PREFIX,
    "; use /api/public/agents/{agentId}/…",
);
const TEAM: IdKind = (
    "a team",
    TeamId::PREFIX,
    "; use /api/public/teams/{teamId}/chat",
);
const OTHERS: [IdKind; 4] = [
    (
        "a message",
        MessageId::PREFIX,
        "; use /api/public/messages/{messageId}",
    ),
    ("a conversation", ConversationId::PREFIX, ""),
    ("an organization", OrgId::PREFIX, ""),
    ("an API key", KeyId::PREFIX, ""),
];

/// Returns the description of an id that names no agent.
pub(crate) fn no_agent(id: &str) -> String {
    describe(id, "agent", AGENT)
}

/// Returns the description of an id that names no team.
pub(crate) fn no_team(id: &str) -> String {
    describe(id, "team", TEAM)
}

fn describe(id: &str, name: &str, wanted: IdKind) -> String {
    if id.starts_with(wanted.1) {
        return format!("no {name} has this id");
    }
    let mut kinds = [AGENT, TEAM].into_iter().chain(OTHERS);
    match kinds.find(|(_, prefix, _)| id.starts_with(prefix)) {
        Some((kind, _, path)) => format!("this is the id of {kind}{path}"),
        None => format!(
            "no {name} has this id; ids of {name}s begin with {}",
            wanted.1
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_another_kind_is_directed_to_its_path() {
        for (detail, expected) in [
            (no_agent("agt_1"), "no agent has this id"),
            (
                no_agent("team_7"),
                "this is the id of a team; use /api/public/teams/{teamId}/chat",
            ),
            (
                no_agent("shop"),
                "no agent has this id; ids of agents begin with agt_",
            ),
            (no_agent("conv_7"), "this is the id of a conversation"),
            (
                no_team("agt_1"),
                "this is the id of an agent; use /api/public/agents/{agentId}/…",
            ),
            (
                no_team("front"),
                "no team has this id; ids of teams begin with team_",
            ),
        ] {
            assert_eq!(detail, expected);
        }
    }
}
