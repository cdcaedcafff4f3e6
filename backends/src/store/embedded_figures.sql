-- What is counted of conversations: a fact of each turn under its reply's id, and the rating of each rated conversation
-- under its own. The hour is that of the first acceptance.
CREATE TABLE facts (
    org_id TEXT NOT NULL,
    hour INTEGER NOT NULL,   -- since the epoch
    id TEXT NOT NULL,
    body TEXT,               -- JSON; NULL: cleared
    stamp INTEGER NOT NULL,
    PRIMARY KEY (org_id, hour, id)
) STRICT, WITHOUT ROWID;

-- How often something was noted of a day.
CREATE TABLE fact_marks (
    org_id TEXT NOT NULL,
    day INTEGER NOT NULL,    -- since the epoch
    changes INTEGER NOT NULL,
    PRIMARY KEY (org_id, day)
) STRICT, WITHOUT ROWID;

-- What was counted of a day.
CREATE TABLE day_figures (
    org_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    body TEXT NOT NULL,      -- JSON
    PRIMARY KEY (org_id, day)
) STRICT, WITHOUT ROWID;
