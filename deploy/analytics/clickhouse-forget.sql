-- Takes off the disk what was deleted from chat.messages (see chat.forgotten in clickhouse.sql). To be run by cron, every hour:
--
--   clickhouse-client --multiquery < deploy/analytics/clickhouse-forget.sql
--
-- Not a TTL: that knows no other table. Not DELETE FROM: that only hides rows until their part happens to be merged.
-- ALTER ... DELETE writes the parts that hold such rows anew; the server removes the old parts some minutes later.
-- A replicated table takes it with allow_nondeterministic_mutations = 1.

ALTER TABLE chat.facts DELETE WHERE event_id IN (SELECT event_id FROM chat.forgotten) SETTINGS mutations_sync = 1;
