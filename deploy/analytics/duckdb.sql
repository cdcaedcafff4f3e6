-- Reads a dump of chat.messages into DuckDB and defines views for common questions. The contract:
-- schemas/README.md.
--
--   kcat -C -b BROKER -t chat.messages -o beginning -e -q > messages.ndjson
--   duckdb chat.duckdb < deploy/analytics/duckdb.sql
--   duckdb chat.duckdb -c 'FROM messages_per_day'
--
-- Another file name: SET VARIABLE messages_file = 'path/*.ndjson' before this script. Loading the
-- same or an overlapping dump again changes nothing: facts are unique by eventId, and deleted
-- conversations are not restored.

SET VARIABLE messages_file = coalesce(getvariable('messages_file'), 'messages.ndjson');

-- Missing fields are null and unknown ones are ignored, as the contract requires of readers.
CREATE OR REPLACE TEMP TABLE dump AS
SELECT * RENAME (
    eventId AS event_id, occurredAt AS occurred_at, orgId AS org_id, conversationId AS conversation_id,
    agentId AS agent_id, teamId AS team_id, requestId AS request_id, messageId AS message_id, sessionId AS session_id,
    visitorId AS visitor_id, keyId AS key_id, acceptedAt AS accepted_at, inReplyTo AS in_reply_to,
    finishReason AS finish_reason, promptTokens AS prompt_tokens, completionTokens AS completion_tokens,
    usageEstimated AS usage_estimated, responseTimeMs AS response_time_ms, firstTextMs AS first_text_ms,
    routingReason AS routing_reason, uiSpec AS ui_spec
)
FROM read_json(getvariable('messages_file'), format = 'newline_delimited', columns = {
    version: 'INTEGER', eventId: 'VARCHAR', occurredAt: 'TIMESTAMP', orgId: 'VARCHAR', conversationId: 'VARCHAR',
    actor: 'VARCHAR', agentId: 'VARCHAR', teamId: 'VARCHAR', requestId: 'VARCHAR', type: 'VARCHAR',
    messageId: 'VARCHAR', position: 'BIGINT', content: 'VARCHAR', sessionId: 'VARCHAR', visitorId: 'VARCHAR',
    source: 'VARCHAR', keyId: 'VARCHAR', acceptedAt: 'TIMESTAMP', inReplyTo: 'VARCHAR', status: 'VARCHAR',
    finishReason: 'VARCHAR', failure: 'VARCHAR', model: 'VARCHAR', promptTokens: 'BIGINT', completionTokens: 'BIGINT',
    usageEstimated: 'BOOLEAN', responseTimeMs: 'BIGINT', firstTextMs: 'BIGINT', attempt: 'INTEGER',
    routingReason: 'VARCHAR', uiSpec: 'JSON', changes: 'JSON', deleted: 'BOOLEAN'
});

CREATE TABLE IF NOT EXISTS facts AS SELECT * EXCLUDE (deleted) FROM dump LIMIT 0;
CREATE UNIQUE INDEX IF NOT EXISTS one_fact ON facts (event_id);
-- Stored apart from the facts, so that an older dump does not restore deleted conversations.
CREATE TABLE IF NOT EXISTS deletions (conversation_id VARCHAR PRIMARY KEY, deleted_at TIMESTAMP);

-- One transaction: the shell continues after an error, and an incomplete load must not contain
-- deleted conversations.
BEGIN;
-- Fail on records that this script cannot read, because totals without them would be silently
-- wrong.
SELECT error('the dump holds records of a version that this script does not know: ' || max(version))
FROM dump HAVING max(version) > 1;
INSERT INTO deletions SELECT conversation_id, max(occurred_at) FROM dump WHERE deleted GROUP BY ALL
ON CONFLICT DO UPDATE SET deleted_at = greatest(deleted_at, excluded.deleted_at);
INSERT OR IGNORE INTO facts SELECT * EXCLUDE (deleted) FROM dump;
-- Of a deleted conversation only facts after its restart are kept: messages later than the
-- deletion, their replies, and changes after the first of them. Time alone is not sufficient,
-- because a reply or a change in progress during the deletion has a later time and belongs to the
-- deleted conversation.
DELETE FROM facts USING deletions
WHERE facts.conversation_id = deletions.conversation_id AND NOT EXISTS (
    FROM facts AS question
    WHERE question.conversation_id = facts.conversation_id AND question.type = 'message.user'
        AND question.occurred_at > deletions.deleted_at
        AND CASE facts.type WHEN 'message.assistant' THEN question.message_id = facts.in_reply_to
            ELSE question.occurred_at <= facts.occurred_at END
);
COMMIT;

-- Messages per day (UTC) and agent. Failed replies are counted separately, because they are not
-- part of the history.
CREATE OR REPLACE VIEW messages_per_day AS
SELECT occurred_at::DATE AS day, org_id, agent_id,
    count(*) FILTER (type = 'message.user') AS user_messages,
    count(*) FILTER (type = 'message.assistant' AND status <> 'failed') AS replies,
    count(*) FILTER (status = 'failed') AS failed_replies,
    coalesce(sum(prompt_tokens + completion_tokens), 0)::BIGINT AS tokens
FROM facts WHERE type LIKE 'message.%' GROUP BY ALL ORDER BY ALL;

-- Response times of completed replies, in milliseconds from acceptance.
CREATE OR REPLACE VIEW response_times AS
SELECT org_id, agent_id, count(*) AS replies,
    quantile_cont(first_text_ms, 0.5) AS first_text_p50_ms, quantile_cont(first_text_ms, 0.95) AS first_text_p95_ms,
    quantile_cont(response_time_ms, 0.5) AS whole_p50_ms, quantile_cont(response_time_ms, 0.95) AS whole_p95_ms,
    quantile_cont(response_time_ms, 0.99) AS whole_p99_ms
FROM facts WHERE status = 'completed' GROUP BY ALL ORDER BY ALL;

-- Replies by final state and failure.
CREATE OR REPLACE VIEW outcomes AS
SELECT org_id, agent_id, status, failure, count(*) AS replies
FROM facts WHERE type = 'message.assistant' GROUP BY ALL ORDER BY ALL;

-- The last rating of each conversation counts.
CREATE OR REPLACE VIEW conversation_ratings AS
SELECT org_id, conversation_id, arg_max(agent_id, occurred_at) AS agent_id,
    arg_max(json_extract_string(changes, '$.rating'), occurred_at)::DOUBLE AS rating
FROM facts WHERE type = 'conversation.updated' AND json_exists(changes, '$.rating') GROUP BY ALL;

CREATE OR REPLACE VIEW ratings AS
SELECT org_id, agent_id, count(rating) AS rated, avg(rating) AS average, count(*) FILTER (rating <= 2) AS unhappy
FROM conversation_ratings WHERE rating IS NOT NULL GROUP BY ALL ORDER BY ALL;

CREATE OR REPLACE VIEW conversations AS
SELECT facts.org_id, facts.conversation_id, any_value(team_id) AS team_id, any_value(source) AS source,
    min(occurred_at) AS began_at, max(occurred_at) AS changed_at,
    count(*) FILTER (type = 'message.user') AS user_messages,
    -- Positions have no gaps, so that the last one gives the length of the history.
    coalesce(max(position) + 1, 0) AS messages,
    list_sort(list(DISTINCT facts.agent_id) FILTER (type = 'message.assistant')) AS agents,
    any_value(conversation_ratings.rating) AS rating
FROM facts LEFT JOIN conversation_ratings USING (conversation_id) GROUP BY ALL ORDER BY began_at;

-- One row, to compare with the dashboard.
CREATE OR REPLACE VIEW totals AS
SELECT count(DISTINCT conversation_id) AS conversations, count(*) FILTER (type = 'message.user') AS user_messages,
    count(*) FILTER (type = 'message.assistant') AS replies, coalesce(sum(prompt_tokens), 0)::BIGINT AS prompt_tokens,
    coalesce(sum(completion_tokens), 0)::BIGINT AS completion_tokens
FROM facts;
