"""Reads chat.messages with Spark Structured Streaming and keeps it as Parquet. The contract: schemas/README.md.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 spark.py stream BROKERS DIRECTORY
    spark-submit spark.py report DIRECTORY
    spark-submit spark.py forget DIRECTORY

The last one takes off the disk what was deleted, which the reports leave out at once. It may run beside the stream, but not
beside itself: once a day, say. The version in --packages is that of your Spark.
"""

import functools
import re
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

TOPIC = "chat.messages"
# Missing fields are null and unknown ones are ignored, as the contract requires of readers.
SCHEMA = """
    version INT, eventId STRING, occurredAt TIMESTAMP, orgId STRING, conversationId STRING, actor STRING,
    agentId STRING, teamId STRING, requestId STRING, type STRING, messageId STRING, position BIGINT, content STRING,
    sessionId STRING, visitorId STRING, source STRING, keyId STRING, acceptedAt TIMESTAMP, inReplyTo STRING,
    status STRING, finishReason STRING, failure STRING, model STRING, promptTokens BIGINT, completionTokens BIGINT,
    usageEstimated BOOLEAN, responseTimeMs BIGINT, firstTextMs BIGINT, attempt INT, routingReason STRING, uiSpec STRING,
    changes STRING, deleted BOOLEAN
"""


def facts(records: DataFrame) -> DataFrame:
    """The records, with their text in the column `value`, as columns, and the day on which they happened."""
    # `raw` is stored with the facts, so that records of unknown versions can be read again later.
    text = records.select(f.col("value").cast("string").alias("raw"))
    parsed = text.select("raw", f.from_json("raw", SCHEMA).alias("fact")).select("raw", "fact.*")
    # Catalogs of data lakes have no upper case in names.
    parsed = parsed.toDF(*map(snake_case, parsed.columns))
    return parsed.withColumn("day", f.to_date("occurred_at"))


def snake_case(name: str) -> str:
    """The column of a field: `occurred_at` for `occurredAt`."""
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def stream(spark: SparkSession, records: DataFrame, directory: str):
    """Starts to append the facts to `directory`, as they come: repeats included, see `distinct_facts`."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")

    # The file sink is not used: it keeps a list of its files, and `forget` replaces some of them.
    def append(batch: DataFrame, _number: int) -> None:
        batch.write.mode("append").partitionBy("day").parquet(f"{directory}/facts")

    return facts(records).writeStream.foreachBatch(append).option("checkpointLocation", f"{directory}/checkpoint")


def stored(spark: SparkSession, directory: str) -> DataFrame:
    """All that is on the disk, and in which file."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    # A lake written by an earlier version of this program has a list of files, which ends where
    # this version continues.
    spark.conf.set("spark.sql.streaming.fileStreamSink.ignoreMetadata", True)
    # The schema is explicit instead of inferred from a file, because older files lack later
    # columns.
    columns = facts(spark.createDataFrame([], "value STRING")).schema
    places = [place for place in (f"{directory}/facts", f"{directory}/kept") if exists(spark, place)]
    tables = [spark.read.schema(columns).parquet(place).select("*", "_metadata.file_path") for place in places]
    return functools.reduce(DataFrame.unionByName, tables)


def exists(spark: SparkSession, place: str) -> bool:
    """Returns true if there is such a file or folder."""
    path = spark._jvm.org.apache.hadoop.fs.Path(place)
    return path.getFileSystem(spark._jsc.hadoopConfiguration()).exists(path)


# Of a deleted conversation only facts after its restart are kept: messages later than the deletion,
# their replies, and changes after the first of them. Time alone is not sufficient, because a reply
# or a change in progress during the deletion has a later time and belongs to the deleted
# conversation. The deletion itself is kept too, because older records may be read again.
DELETED_FACTS = """
    WITH deletions AS (
        SELECT conversation_id, max(occurred_at) AS deleted_at FROM facts WHERE deleted GROUP BY conversation_id),
    questions AS (
        SELECT conversation_id, message_id, occurred_at FROM facts JOIN deletions USING (conversation_id)
        WHERE type = 'message.user' AND occurred_at > deleted_at)
    SELECT DISTINCT event_id FROM facts
    LEFT SEMI JOIN deletions ON facts.conversation_id = deletions.conversation_id
    LEFT ANTI JOIN questions ON facts.conversation_id = questions.conversation_id
        AND if(type = 'message.assistant', questions.message_id = in_reply_to, questions.occurred_at <= facts.occurred_at)
    WHERE deleted IS NOT TRUE"""


def deleted_facts(facts: DataFrame) -> DataFrame:
    """Returns the `event_id` of each fact that a deletion covers."""
    facts.where("version = 1").createOrReplaceTempView("facts")
    return facts.sparkSession.sql(DELETED_FACTS)


def distinct_facts(spark: SparkSession, directory: str) -> DataFrame:
    """Returns each fact once, and none that was deleted."""
    # dropDuplicatesWithinWatermark is not used in the stream: a watermark also drops late records,
    # and while a backlog is read one partition is always behind another.
    facts = stored(spark, directory)
    kept = facts.where("version = 1 AND deleted IS NOT TRUE").join(deleted_facts(facts), "event_id", "left_anti")
    return kept.dropDuplicates(["event_id"])


def delete_from_disk(spark: SparkSession, directory: str) -> None:
    """Deletes the files that contain deleted facts, after copying their other facts."""
    facts = stored(spark, directory)
    deleted = deleted_facts(facts)
    files = [row.file_path for row in facts.join(deleted, "event_id", "left_semi").select("file_path").distinct().collect()]
    if not files:
        return
    kept = facts.where(f.col("file_path").isin(files)).join(deleted, "event_id", "left_anti").drop("file_path")
    # A separate folder, because two writers of one folder would delete each other's unfinished
    # files.
    kept.write.mode("append").partitionBy("day").parquet(f"{directory}/kept")
    # Deleted last: if this fails, facts exist twice, which does not change any count, and the next
    # run finishes the work.
    for file in files:
        path = spark._jvm.org.apache.hadoop.fs.Path(spark._jvm.java.net.URI(file))
        path.getFileSystem(spark._jsc.hadoopConfiguration()).delete(path, False)


REPORTS = {
    "messages_per_day": """
        SELECT day, org_id, agent_id, count_if(type = 'message.user') AS user_messages,
            count_if(type = 'message.assistant' AND status <> 'failed') AS replies,
            count_if(status = 'failed') AS failed_replies,
            coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens
        FROM facts WHERE type LIKE 'message.%' GROUP BY ALL ORDER BY day, org_id, agent_id""",
    "response_times": """
        SELECT org_id, agent_id, count(*) AS replies,
            percentile(first_text_ms, 0.5) AS first_text_p50_ms, percentile(first_text_ms, 0.95) AS first_text_p95_ms,
            percentile(response_time_ms, 0.5) AS whole_p50_ms, percentile(response_time_ms, 0.95) AS whole_p95_ms,
            percentile(response_time_ms, 0.99) AS whole_p99_ms
        FROM facts WHERE status = 'completed' GROUP BY ALL ORDER BY org_id, agent_id""",
    "ratings": """
        WITH last AS (
            SELECT org_id, conversation_id, max_by(agent_id, occurred_at) AS agent_id,
                CAST(max_by(get_json_object(changes, '$.rating'), occurred_at) AS DOUBLE) AS rating
            FROM facts WHERE type = 'conversation.updated' AND array_contains(json_object_keys(changes), 'rating')
            GROUP BY org_id, conversation_id)
        SELECT org_id, agent_id, count(rating) AS rated, avg(rating) AS average, count_if(rating <= 2) AS unhappy
        FROM last WHERE rating IS NOT NULL GROUP BY ALL ORDER BY org_id, agent_id""",
    "totals": """
        SELECT count(DISTINCT conversation_id) AS conversations, count_if(type = 'message.user') AS user_messages,
            count_if(type = 'message.assistant') AS replies, coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
            coalesce(sum(completion_tokens), 0) AS completion_tokens
        FROM facts""",
}


def report(spark: SparkSession, directory: str) -> dict[str, DataFrame]:
    """The answers to the usual questions, each as a table."""
    distinct_facts(spark, directory).createOrReplaceTempView("facts")
    return {name: spark.sql(query) for name, query in REPORTS.items()}


def main() -> None:
    """Runs one of the two commands."""
    spark = SparkSession.builder.appName("chat-analytics").getOrCreate()
    match sys.argv[1:]:
        case ["stream", brokers, directory]:
            kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
            records = kafka.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()
            stream(spark, records, directory).trigger(processingTime="1 minute").start().awaitTermination()
        case ["report", directory]:
            for name, table in report(spark, directory).items():
                print(name)
                table.show(truncate=False)
        case ["forget", directory]:
            delete_from_disk(spark, directory)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
