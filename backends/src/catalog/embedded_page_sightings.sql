-- When the widget of an agent last started on a page of an origin, about: microseconds since the epoch.
CREATE TABLE page_sightings (
    org_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, agent_id, origin)
) WITHOUT ROWID, STRICT;
