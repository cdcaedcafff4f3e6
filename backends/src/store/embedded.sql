-- One row per conversation. Each cell stays with the stamp of the write that won it.
CREATE TABLE conversations (
    org_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    origin TEXT,             -- JSON, of the first turn: session, owner, creation
    origin_stamp INTEGER,
    progress TEXT,           -- JSON: count of messages, active reply, last change
    progress_stamp INTEGER,
    metadata_at INTEGER,     -- last change of the metadata, in microseconds
    PRIMARY KEY (org_id, conversation_id)
) STRICT, WITHOUT ROWID;

-- One row per key of a conversation's metadata, so that two changes never overwrite each other's keys.
CREATE TABLE metadata (
    org_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT,              -- JSON; NULL: cleared
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, conversation_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    org_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    body TEXT NOT NULL,      -- JSON
    stamp INTEGER NOT NULL,
    PRIMARY KEY (org_id, conversation_id, position)
) STRICT;

CREATE TABLE replies (
    org_id TEXT NOT NULL,
    reply_id TEXT NOT NULL,
    body TEXT NOT NULL,      -- JSON: what became of it
    stamp INTEGER NOT NULL,
    PRIMARY KEY (org_id, reply_id)
) STRICT;
