"""Reads chat.messages with Spark Structured Streaming and keeps it as Parquet. The contract: schemas/README.md.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 spark.py stream BROKERS DIRECTORY
    spark-submit spark.py report DIRECTORY

The version in --packages is that of your Spark.
"""

import re
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

TOPIC = "chat.messages"
# A field that a record lacks reads as null and an unknown one is ignored, as the contract asks of readers.
SCHEMA = """
    version INT, eventId STRING, occurredAt TIMESTAMP, orgId STRING, conversationId STRING, actor STRING,
    agentId STRING, teamId STRING, requestId STRING, type STRING, messageId STRING, position BIGINT, content STRING,
    sessionId STRING, visitorId STRING, source STRING, keyId STRING, acceptedAt TIMESTAMP, inReplyTo STRING,
    status STRING, finishReason STRING, failure STRING, model STRING, promptTokens BIGINT, completionTokens BIGINT,
    usageEstimated BOOLEAN, responseTimeMs BIGINT, firstTextMs BIGINT, attempt INT, routingReason STRING, uiSpec STRING,
    changes STRING
"""


def facts(records: DataFrame) -> DataFrame:
    """The records, with their text in the column `value`, as columns, and the day on which they happened."""
    # `raw` stays with the facts: a record of a version that is not known yet is not lost, but read again later.
    text = records.select(f.col("value").cast("string").alias("raw"))
    parsed = text.select("raw", f.from_json("raw", SCHEMA).alias("fact")).select("raw", "fact.*")
    # The catalogues of lakes know no upper case in names.
    parsed = parsed.toDF(*map(snake_case, parsed.columns))
    return parsed.withColumn("day", f.to_date("occurred_at"))


def snake_case(name: str) -> str:
    """The column of a field: `occurred_at` for `occurredAt`."""
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def stream(spark: SparkSession, records: DataFrame, directory: str):
    """Starts to append the facts to `directory`, as they come: repeats included, see `distinct_facts`."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    writer = facts(records).writeStream.format("parquet").partitionBy("day")
    return writer.option("path", f"{directory}/facts").option("checkpointLocation", f"{directory}/checkpoint")


def distinct_facts(spark: SparkSession, directory: str) -> DataFrame:
    """Each fact once."""
    # Not dropDuplicatesWithinWatermark in the stream: a watermark also drops what is late, and while a backlog is read
    # one partition is always behind another.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark.read.parquet(f"{directory}/facts").where("version = 1").dropDuplicates(["event_id"])


REPORTS = {
    "messages_per_day": """
        SELECT day, org_id, agent_id, count_if(type = 'message.user') AS user_messages,
            count_if(type = 'message.assistant' AND status <> 'failed') AS replies,
            count_if(status = 'failed') AS failed_replies,
            coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens
        FROM facts WHERE type <> 'conversation.updated' GROUP BY ALL ORDER BY day, org_id, agent_id""",
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
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
