-- When each key was last used, about: microseconds since the epoch.
CREATE TABLE key_uses (
    org_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, key_id)
) WITHOUT ROWID, STRICT;
