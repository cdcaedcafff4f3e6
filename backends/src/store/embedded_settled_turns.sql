-- Ends between which the store decided: the first one of a reply stays.
CREATE TABLE settled_turns (
    org_id TEXT NOT NULL,
    reply_id TEXT NOT NULL,
    body TEXT NOT NULL,          -- JSON
    settled_at INTEGER NOT NULL, -- microseconds
    PRIMARY KEY (org_id, reply_id)
) STRICT;
