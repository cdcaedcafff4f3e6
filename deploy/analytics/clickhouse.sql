-- Reads chat.messages into ClickHouse continuously. The contract: schemas/README.md.
--
--   clickhouse-client --multiquery < deploy/analytics/clickhouse.sql
--
-- Change kafka_broker_list, and kafka_topic_list if the installation has a namespace. Run
-- clickhouse-forget.sql with cron: the views hide deleted conversations at once, but only that
-- script deletes their rows from disk.

CREATE DATABASE IF NOT EXISTS chat;

-- One column with the whole record: a record that is not JSON stops nothing and is stored below.
CREATE TABLE IF NOT EXISTS chat.message_queue (record String)
ENGINE = Kafka
SETTINGS kafka_broker_list = 'localhost:9092', kafka_topic_list = 'chat.messages',
    kafka_group_name = 'clickhouse-analytics', kafka_format = 'RawBLOB', kafka_num_consumers = 1;

-- Columns are named like the fields, in snake case. Delivery is at least once: rows with the same
-- event_id are merged, and kept_facts uses FINAL, so that duplicates never count.
CREATE TABLE IF NOT EXISTS chat.facts (
    event_id String, occurred_at DateTime64(6, 'UTC'), org_id String, conversation_id String, actor LowCardinality(String),
    agent_id String, team_id Nullable(String), type LowCardinality(String), message_id Nullable(String),
    position Nullable(UInt64), content Nullable(String), session_id Nullable(String), visitor_id Nullable(String),
    source LowCardinality(Nullable(String)), in_reply_to Nullable(String), status LowCardinality(Nullable(String)),
    finish_reason LowCardinality(Nullable(String)), failure LowCardinality(Nullable(String)),
    model LowCardinality(Nullable(String)), prompt_tokens Nullable(UInt64), completion_tokens Nullable(UInt64),
    response_time_ms Nullable(UInt64), first_text_ms Nullable(UInt64), routing_reason Nullable(String), changes String
)
ENGINE = ReplacingMergeTree
ORDER BY (org_id, conversation_id, event_id);

-- Deleted conversations with the time of their last deletion. Stored apart from the facts, so that
-- an older record that is read again does not restore anything.
CREATE TABLE IF NOT EXISTS chat.deletions (org_id String, conversation_id String, deleted_at DateTime64(6, 'UTC'))
ENGINE = ReplacingMergeTree(deleted_at)
ORDER BY (org_id, conversation_id);

-- Records that this schema cannot read, to be inspected and read again with a newer schema.
CREATE TABLE IF NOT EXISTS chat.set_aside (record String, seen_at DateTime DEFAULT now())
ENGINE = MergeTree
ORDER BY seen_at;

CREATE MATERIALIZED VIEW IF NOT EXISTS chat.read_facts TO chat.facts AS
SELECT
    JSONExtractString(record, 'eventId') AS event_id,
    parseDateTime64BestEffort(JSONExtractString(record, 'occurredAt'), 6, 'UTC') AS occurred_at,
    JSONExtractString(record, 'orgId') AS org_id,
    JSONExtractString(record, 'conversationId') AS conversation_id,
    JSONExtractString(record, 'actor') AS actor,
    JSONExtractString(record, 'agentId') AS agent_id,
    JSONExtract(record, 'teamId', 'Nullable(String)') AS team_id,
    JSONExtractString(record, 'type') AS type,
    JSONExtract(record, 'messageId', 'Nullable(String)') AS message_id,
    JSONExtract(record, 'position', 'Nullable(UInt64)') AS position,
    JSONExtract(record, 'content', 'Nullable(String)') AS content,
    JSONExtract(record, 'sessionId', 'Nullable(String)') AS session_id,
    JSONExtract(record, 'visitorId', 'Nullable(String)') AS visitor_id,
    JSONExtract(record, 'source', 'Nullable(String)') AS source,
    JSONExtract(record, 'inReplyTo', 'Nullable(String)') AS in_reply_to,
    JSONExtract(record, 'status', 'Nullable(String)') AS status,
    JSONExtract(record, 'finishReason', 'Nullable(String)') AS finish_reason,
    JSONExtract(record, 'failure', 'Nullable(String)') AS failure,
    JSONExtract(record, 'model', 'Nullable(String)') AS model,
    JSONExtract(record, 'promptTokens', 'Nullable(UInt64)') AS prompt_tokens,
    JSONExtract(record, 'completionTokens', 'Nullable(UInt64)') AS completion_tokens,
    JSONExtract(record, 'responseTimeMs', 'Nullable(UInt64)') AS response_time_ms,
    JSONExtract(record, 'firstTextMs', 'Nullable(UInt64)') AS first_text_ms,
    JSONExtract(record, 'routingReason', 'Nullable(String)') AS routing_reason,
    JSONExtractRaw(record, 'changes') AS changes
FROM chat.message_queue WHERE JSONExtractUInt(record, 'version') = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS chat.read_deletions TO chat.deletions AS
SELECT
    JSONExtractString(record, 'orgId') AS org_id,
    JSONExtractString(record, 'conversationId') AS conversation_id,
    parseDateTime64BestEffort(JSONExtractString(record, 'occurredAt'), 6, 'UTC') AS deleted_at
FROM chat.message_queue WHERE JSONExtractUInt(record, 'version') = 1 AND JSONExtractBool(record, 'deleted');

CREATE MATERIALIZED VIEW IF NOT EXISTS chat.read_set_aside TO chat.set_aside AS
SELECT record FROM chat.message_queue WHERE JSONExtractUInt(record, 'version') <> 1;

-- Facts covered by deletions. Of a deleted conversation only facts after its restart are kept:
-- messages later than the deletion, their replies, and changes after the first of them. Time alone
-- is not sufficient, because a reply or a change in progress during the deletion has a later time
-- and belongs to the deleted conversation.
CREATE OR REPLACE VIEW chat.forgotten AS
WITH facts_of_deleted AS (
    SELECT event_id, conversation_id, type, occurred_at, message_id, in_reply_to, deleted_at
    FROM chat.facts
    INNER JOIN (SELECT org_id, conversation_id, max(deleted_at) AS deleted_at FROM chat.deletions GROUP BY ALL) AS deletions
    USING (org_id, conversation_id)
    -- Uses the primary key, so that only deleted conversations are read.
    WHERE (org_id, conversation_id) IN (SELECT org_id, conversation_id FROM chat.deletions)
), restarted AS (
    SELECT conversation_id, min(occurred_at) AS began_at, groupUniqArray(assumeNotNull(message_id)) AS questions
    FROM facts_of_deleted WHERE type = 'message.user' AND occurred_at > deleted_at GROUP BY conversation_id
)
SELECT event_id FROM facts_of_deleted LEFT JOIN restarted USING (conversation_id)
WHERE NOT if(type = 'message.assistant', has(questions, ifNull(in_reply_to, '')),
    notEmpty(questions) AND occurred_at >= began_at);

-- Each fact once, without deleted ones. Query this view instead of the table.
CREATE OR REPLACE VIEW chat.kept_facts AS
SELECT * FROM chat.facts FINAL WHERE event_id NOT IN (SELECT event_id FROM chat.forgotten);

-- Messages per day (UTC) and agent. Failed replies are counted separately, because they are not
-- part of the history.
CREATE OR REPLACE VIEW chat.messages_per_day AS
SELECT toDate(occurred_at) AS day, org_id, agent_id,
    countIf(type = 'message.user') AS user_messages,
    countIf(type = 'message.assistant' AND status <> 'failed') AS replies,
    countIf(status = 'failed') AS failed_replies,
    sum(ifNull(prompt_tokens, 0) + ifNull(completion_tokens, 0)) AS tokens
FROM chat.kept_facts WHERE type LIKE 'message.%' GROUP BY day, org_id, agent_id ORDER BY day, org_id, agent_id;

-- Response times of completed replies, in milliseconds from acceptance.
CREATE OR REPLACE VIEW chat.response_times AS
SELECT org_id, agent_id, count() AS replies,
    quantileExactInclusive(0.5)(first_text_ms) AS first_text_p50_ms,
    quantileExactInclusive(0.95)(first_text_ms) AS first_text_p95_ms,
    quantileExactInclusive(0.5)(response_time_ms) AS whole_p50_ms,
    quantileExactInclusive(0.95)(response_time_ms) AS whole_p95_ms,
    quantileExactInclusive(0.99)(response_time_ms) AS whole_p99_ms
FROM chat.kept_facts WHERE status = 'completed' GROUP BY org_id, agent_id ORDER BY org_id, agent_id;

-- Replies by final state and failure.
CREATE OR REPLACE VIEW chat.outcomes AS
SELECT org_id, agent_id, status, failure, count() AS replies
FROM chat.kept_facts WHERE type = 'message.assistant'
GROUP BY org_id, agent_id, status, failure ORDER BY org_id, agent_id, status, failure;

-- The last rating of each conversation counts.
CREATE OR REPLACE VIEW chat.conversation_ratings AS
SELECT org_id, conversation_id, argMax(facts.agent_id, occurred_at) AS agent_id,
    JSONExtract(argMax(changes, occurred_at), 'rating', 'Nullable(Float64)') AS rating
FROM chat.kept_facts AS facts WHERE type = 'conversation.updated' AND JSONHas(changes, 'rating')
GROUP BY org_id, conversation_id;

CREATE OR REPLACE VIEW chat.ratings AS
SELECT org_id, agent_id, count() AS rated, avg(rating) AS average, countIf(rating <= 2) AS unhappy
FROM chat.conversation_ratings WHERE rating IS NOT NULL GROUP BY org_id, agent_id ORDER BY org_id, agent_id;

CREATE OR REPLACE VIEW chat.conversations AS
SELECT org_id, conversation_id, any(facts.team_id) AS team_id, any(facts.source) AS source,
    min(occurred_at) AS began_at, max(occurred_at) AS changed_at,
    countIf(type = 'message.user') AS user_messages,
    -- Positions have no gaps, so that the last one gives the length of the history.
    ifNull(max(position) + 1, 0) AS messages,
    arraySort(groupUniqArrayIf(facts.agent_id, type = 'message.assistant')) AS agents,
    any(ratings.rating) AS rating
FROM chat.kept_facts AS facts
LEFT JOIN chat.conversation_ratings AS ratings USING (org_id, conversation_id)
GROUP BY org_id, conversation_id ORDER BY began_at;

-- One row, to compare with the dashboard.
CREATE OR REPLACE VIEW chat.totals AS
SELECT uniqExact(conversation_id) AS conversations, countIf(type = 'message.user') AS user_messages,
    countIf(type = 'message.assistant') AS replies, sum(ifNull(prompt_tokens, 0)) AS prompt_tokens,
    sum(ifNull(completion_tokens, 0)) AS completion_tokens
FROM chat.kept_facts;
