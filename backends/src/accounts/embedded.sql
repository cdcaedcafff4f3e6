CREATE TABLE sessions (
    hash BLOB PRIMARY KEY NOT NULL,
    body TEXT NOT NULL,          -- JSON
    seen_at INTEGER NOT NULL,    -- microseconds since the epoch
    expires_at INTEGER NOT NULL  -- likewise
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE audit_log (
    org_id TEXT NOT NULL,
    id TEXT NOT NULL,            -- ordered by time
    body TEXT NOT NULL,          -- JSON
    PRIMARY KEY (org_id, id)
) STRICT, WITHOUT ROWID;
