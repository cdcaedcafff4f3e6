-- Receipts of erasures.
CREATE TABLE erasures (
    org_id TEXT NOT NULL,
    erasure_id TEXT NOT NULL,
    body TEXT NOT NULL,      -- JSON
    steps INTEGER NOT NULL,
    PRIMARY KEY (org_id, erasure_id)
) STRICT;
