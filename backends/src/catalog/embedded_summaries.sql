-- Content of lists. It has a table of its own, because columns behind a long body are read through its overflow pages.
CREATE TABLE entry_summaries (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    label TEXT NOT NULL,     -- slug, name or e-mail address, by which lists are sorted
    summary TEXT NOT NULL,   -- JSON, without the long texts of the body
    PRIMARY KEY (kind, id)
) STRICT;

CREATE INDEX summaries_by_label ON entry_summaries (kind, org_id, label, id);

DROP INDEX entries_by_org;

-- The next change of an entry replaces what is copied here.
INSERT INTO entry_summaries
SELECT kind, id, org_id,
    coalesce(json_extract(body, '$.slug'), json_extract(body, '$.provider.slug'), json_extract(body, '$.key.name'),
        json_extract(body, '$.user.email'), id),
    CASE kind
        WHEN 'agent' THEN json_remove(
            json_replace(body, '$.allowedDomains', json((SELECT json_group_array(value) FROM
                (SELECT value FROM json_each(body, '$.allowedDomains') ORDER BY key LIMIT 3)))),
            '$.instructions', '$.welcomeMessage', '$.placeholderText', '$.widget', '$.disclosure', '$.files',
            '$.ecommerce.products')
        WHEN 'team' THEN json_replace(body, '$.members', json((SELECT json_group_array(
            json_object('agent', json_extract(value, '$.agent'), 'specialization', ''))
            FROM (SELECT value FROM json_each(body, '$.members') ORDER BY key))))
        ELSE body
    END
FROM entries;
