-- Conversations by the moment at which they began: all of an organization under the list '', those of an agent or a team
-- under its id.
CREATE TABLE conversation_lists (
    org_id TEXT NOT NULL,
    list TEXT NOT NULL,
    began_at INTEGER NOT NULL,  -- microseconds
    conversation_id TEXT NOT NULL,
    PRIMARY KEY (org_id, list, began_at, conversation_id)
) STRICT, WITHOUT ROWID;

-- Those that are there already. Their beginning is a text such as 2026-01-31T12:34:56.123456Z.
INSERT INTO conversation_lists
SELECT org_id, list, unixepoch(substr(began, 1, 19)) * 1000000 + CAST(substr(began, 21, 6) AS INTEGER), conversation_id
FROM (
    SELECT org_id, conversation_id, '' AS list, origin ->> '$.createdAt' AS began
    FROM conversations WHERE origin IS NOT NULL
    UNION ALL
    SELECT org_id, conversation_id, origin ->> '$.owner.id', origin ->> '$.createdAt'
    FROM conversations WHERE origin IS NOT NULL
);
