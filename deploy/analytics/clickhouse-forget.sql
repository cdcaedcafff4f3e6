-- Deletes the rows of deleted conversations from disk (see chat.forgotten in clickhouse.sql). Run
-- it hourly with cron:
--
--   clickhouse-client --multiquery < deploy/analytics/clickhouse-forget.sql
--
-- A TTL cannot read another table, and DELETE FROM only hides rows until their part is merged.
-- ALTER ... DELETE rewrites the parts with such rows, and the server removes the old parts a few
-- minutes later. A replicated table needs allow_nondeterministic_mutations = 1.

ALTER TABLE chat.facts DELETE WHERE event_id IN (SELECT event_id FROM chat.forgotten) SETTINGS mutations_sync = 1;
