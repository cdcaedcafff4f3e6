-- Facts about conversations: one for each turn under its reply's id, and the rating of each rated conversation under
-- its own id. The hour is that of the first acceptance.
CREATE TABLE facts (
    org_id TEXT NOT NULL,
    hour INTEGER NOT NULL,   -- since the epoch
    id TEXT NOT NULL,
    body TEXT,               -- JSON; NULL: cleared
    stamp INTEGER NOT NULL,
    PRIMARY KEY (org_id, hour, id)
) STRICT, WITHOUT ROWID;

-- Number of changes to the facts of each day.
CREATE TABLE fact_marks (
    org_id TEXT NOT NULL,
    day INTEGER NOT NULL,    -- since the epoch
    changes INTEGER NOT NULL,
    PRIMARY KEY (org_id, day)
) STRICT, WITHOUT ROWID;

-- Totals of each day.
CREATE TABLE day_figures (
    org_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    body TEXT NOT NULL,      -- JSON
    PRIMARY KEY (org_id, day)
) STRICT, WITHOUT ROWID;
