CREATE TABLE entries (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    key_hash BLOB,           -- of API keys: the hash under which the key is found
    body TEXT NOT NULL,      -- JSON
    PRIMARY KEY (kind, id)
) STRICT;

CREATE INDEX entries_by_org ON entries (kind, org_id, id);

CREATE UNIQUE INDEX keys_by_hash ON entries (key_hash) WHERE key_hash IS NOT NULL;
