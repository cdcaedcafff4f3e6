CREATE TABLE products (
    org_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    kept TEXT,               -- JSON: the current version
    refresh TEXT,            -- JSON: the last fetch of a feed
    asked_at INTEGER,        -- microseconds since the epoch
    PRIMARY KEY (org_id, agent_id)
) STRICT;

-- Versions of which something may lie in product_chunks.
CREATE TABLE product_versions (
    org_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (org_id, agent_id, version)
) STRICT;

CREATE TABLE product_chunks (
    org_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    version TEXT NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (org_id, agent_id, version, number)
) STRICT;
