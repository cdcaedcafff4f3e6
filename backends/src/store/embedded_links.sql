-- Conversations of teams in which an agent answered a session.
CREATE TABLE session_links (
    org_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    answered_at INTEGER NOT NULL, -- microseconds
    PRIMARY KEY (org_id, agent_id, session_id, conversation_id)
) STRICT, WITHOUT ROWID;
