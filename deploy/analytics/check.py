"""Runs the analytics samples over the golden records and fails on any wrong result.

    python3 -m venv /tmp/analytics && /tmp/analytics/bin/pip install duckdb chdb pyspark
    /tmp/analytics/bin/python deploy/analytics/check.py [duckdb] [clickhouse] [spark]

Without arguments it checks DuckDB alone. `clickhouse` runs the script in chdb (the engine as a library) with the Kafka
table replaced by one that the check writes to. `spark` needs Java 17 and reads files in place of Kafka.
"""

import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "schemas/examples/chat.messages/v1"
SHOP, SUPPORT = "shop", "support"

# Computed by hand from the golden records, with names instead of agent ids.
FIRST_TOTALS = {
    "totals": [(3, 6, 6, 827, 32)],
    "messages_per_day": [
        ("2026-11-02", SHOP, 1, 1, 0, 223),
        ("2026-11-02", SUPPORT, 1, 0, 0, 0),
        ("2026-11-03", SHOP, 3, 2, 1, 233),
        ("2026-11-03", SUPPORT, 1, 2, 0, 403),
    ],
    "response_times": [(SHOP, 2, 560, 614, 1520, 1808, 1833.6), (SUPPORT, 1, 410, 410, 2960, 2960, 2960)],
    "ratings": [(SHOP, 1, 5, 0), (SUPPORT, 1, 3, 0)],
    "outcomes": [
        (SHOP, "completed", None, 2),
        (SHOP, "failed", "model_unavailable", 1),
        (SHOP, "incomplete", "model_timeout", 1),
        (SUPPORT, "cancelled", None, 1),
        (SUPPORT, "completed", None, 1),
    ],
    "conversations": [(1, 2, (SHOP,), 5), (2, 4, (SUPPORT,), 3), (3, 5, (SHOP,), None)],
}
# Without the deleted conversation of November 2 with the shop.
TOTALS_AFTER_DELETION = {
    "totals": [(2, 5, 5, 615, 21)],
    "messages_per_day": [
        ("2026-11-02", SUPPORT, 1, 0, 0, 0),
        ("2026-11-03", SHOP, 3, 2, 1, 233),
        ("2026-11-03", SUPPORT, 1, 2, 0, 403),
    ],
    "response_times": [(SHOP, 1, 500, 500, 1200, 1200, 1200), (SUPPORT, 1, 410, 410, 2960, 2960, 2960)],
    "ratings": [(SUPPORT, 1, 3, 0)],
    "outcomes": [
        (SHOP, "completed", None, 1),
        (SHOP, "failed", "model_unavailable", 1),
        (SHOP, "incomplete", "model_timeout", 1),
        (SUPPORT, "cancelled", None, 1),
        (SUPPORT, "completed", None, 1),
    ],
    "conversations": [(2, 4, (SUPPORT,), 3), (3, 5, (SHOP,), None)],
}
# Including the messages after the conversation was restarted.
RESTARTED_TOTALS = {
    "totals": [(3, 6, 6, 915, 41)],
    "messages_per_day": [
        ("2026-11-02", SUPPORT, 1, 0, 0, 0),
        ("2026-11-03", SHOP, 4, 3, 1, 553),
        ("2026-11-03", SUPPORT, 1, 2, 0, 403),
    ],
    "response_times": [(SHOP, 2, 750, 975, 2100, 2910, 2982), (SUPPORT, 1, 410, 410, 2960, 2960, 2960)],
    "ratings": [(SHOP, 1, 2, 1), (SUPPORT, 1, 3, 0)],
    "outcomes": FIRST_TOTALS["outcomes"],
    "conversations": [(1, 2, (SHOP,), 2), (2, 4, (SUPPORT,), 3), (3, 5, (SHOP,), None)],
}
COLUMNS = {
    "totals": "conversations, user_messages, replies, prompt_tokens, completion_tokens",
    "messages_per_day": "day, agent_id, user_messages, replies, failed_replies, tokens",
    "response_times": "agent_id, replies, first_text_p50_ms, first_text_p95_ms, whole_p50_ms, whole_p95_ms, whole_p99_ms",
    "ratings": "agent_id, rated, average, unhappy",
    "outcomes": "agent_id, status, failure, replies",
    "conversations": "user_messages, messages, agents, rating",
}


def golden() -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(EXAMPLES.glob("*.json"))]


def variant(name: str, **fields) -> dict:
    return {**json.loads((EXAMPLES / f"{name}.json").read_text()), **fields}


def before() -> list[dict]:
    return [record for record in golden() if not record.get("deleted")]


def records_in_progress() -> list[dict]:
    """Records in progress at the deletion (08:00:00): published before it, some with a later time."""
    return [
        variant("user-message-from-widget", eventId="evt_late_question", occurredAt="2026-11-03T07:59:59.900000Z",
                messageId="msg_late", position=2),
        variant("conversation-rated", eventId="evt_late_change", occurredAt="2026-11-03T08:00:00.200000Z"),
        variant("assistant-completed-with-ui-spec", eventId="evt_late_reply", occurredAt="2026-11-03T08:00:00.400000Z",
                messageId="msg_late_reply", inReplyTo="msg_late", position=3, status="cancelled"),
    ]


def deletion() -> list[dict]:
    return [record for record in golden() if record.get("deleted")]


def restarted_records() -> list[dict]:
    """Records of the deleted conversation after its restart under the same id."""
    return [
        variant("user-message-from-widget", eventId="evt_new_question", occurredAt="2026-11-03T09:00:00.000000Z",
                messageId="msg_new"),
        variant("assistant-completed-with-ui-spec", eventId="evt_new_reply", occurredAt="2026-11-03T09:00:03.000000Z",
                messageId="msg_new_reply", inReplyTo="msg_new", promptTokens=300, completionTokens=20, firstTextMs=1000,
                responseTimeMs=3000),
        variant("conversation-rated", eventId="evt_new_rating", occurredAt="2026-11-03T09:01:00.000000Z",
                changes={"rating": 2}),
    ]


def stages() -> list[tuple]:
    """Stages with their new records and the expected results after each."""
    everything = [*before(), *records_in_progress(), *deletion(), *restarted_records()]
    return [
        ("first records", before(), FIRST_TOTALS),
        ("deletion", [*records_in_progress(), *deletion()], TOTALS_AFTER_DELETION),
        ("deleted records again", [*before(), *records_in_progress()], TOTALS_AFTER_DELETION),
        ("restarted conversation", restarted_records(), RESTARTED_TOTALS),
        ("all records again", everything, RESTARTED_TOTALS),
    ]


def forgotten() -> set[str]:
    """Ids of the facts that must be removed."""
    (conversation,) = {record["conversationId"] for record in deletion()}
    return {record["eventId"] for record in [*before(), *records_in_progress()] if record["conversationId"] == conversation}


def newer() -> str:
    return json.dumps({**before()[0], "version": 2})


def dump(records: list[dict]) -> str:
    """Returns every record twice, as after a redelivery, the second time with an unknown field."""
    records = records + [{**record, "addedLater": [1]} for record in records]
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def agent_names() -> dict[str, str]:
    agents = {record["agentId"] for record in golden()}
    support = {record["agentId"] for record in golden() if record["teamId"]}
    return {agent: SUPPORT if agent in support else SHOP for agent in agents}


def compare(engine: str, stage: str, expected: dict, views: dict) -> None:
    names = agent_names()

    def plain(value):
        if isinstance(value, (list, tuple)):
            return tuple(plain(item) for item in value)
        if value is None or isinstance(value, str):
            return names.get(value, value)
        return round(float(value), 6) if isinstance(value, (int, float)) else str(value)

    def in_order(table):
        return sorted((plain(row) for row in table), key=repr)

    for view, rows in views.items():
        if in_order(rows) != in_order(expected[view]):
            sys.exit(f"{engine}, {stage} {view}:\n  found    {in_order(rows)}\n  expected {in_order(expected[view])}")
    print(f"{engine}: {stage} counts right in {', '.join(views)}")


def check_gone(engine: str, stored: set[str]) -> None:
    """Checks that deleted facts are gone and all others are stored."""
    if stored & forgotten():
        sys.exit(f"{engine}: still stored: {stored & forgotten()}")
    rest = {record["eventId"] for record in [*before(), *restarted_records()]} - forgotten()
    if rest - stored:
        sys.exit(f"{engine}: lost: {rest - stored}")
    print(f"{engine}: nothing that was deleted is stored")


def check_duckdb(folder: pathlib.Path) -> None:
    import duckdb

    script = (HERE / "duckdb.sql").read_text()
    database = duckdb.connect(str(folder / "chat.duckdb"))
    database.execute("SET VARIABLE messages_file = ?", [str(folder / "messages.ndjson")])

    def load(text):
        (folder / "messages.ndjson").write_text(text)
        database.execute(script)

    for stage, records, expected in stages():
        load(dump(records))
        views = {view: database.execute(f"SELECT {COLUMNS[view]} FROM {view}").fetchall() for view in expected}
        compare("duckdb", stage, expected, views)
    check_gone("duckdb", {row[0] for row in database.execute("SELECT event_id FROM facts").fetchall()})
    try:
        load(newer())
    except duckdb.Error as error:
        assert "version" in str(error), error
        print("duckdb: a newer version is refused")
    else:
        sys.exit("duckdb: a record of an unknown version was read")


def check_clickhouse(folder: pathlib.Path) -> None:
    from chdb import session

    database = session.Session(str(folder / "clickhouse"))

    def run(script):
        without_comments = "\n".join(line for line in script.splitlines() if not line.strip().startswith("--"))
        for statement in without_comments.split(";"):
            if statement.strip():
                database.query(statement)

    def rows(query):
        # ClickHouse writes 64-bit integers as text, so that JavaScript does not round them.
        return [[float(cell) if isinstance(cell, str) and cell.isdigit() else cell for cell in json.loads(line)]
                for line in str(database.query(query, "JSONCompactEachRow")).splitlines()]

    def load(text):
        # JSON text in a JSON string is the one quoting that both languages share.
        values = "".join(json.dumps({"record": line}) + "\n" for line in text.splitlines())
        database.query(f"INSERT INTO chat.message_queue FORMAT JSONEachRow {values}")

    def check(stage, expected):
        views = {view: rows(f"SELECT {COLUMNS[view]} FROM chat.{view}") for view in expected}
        compare("clickhouse", stage, expected, views)

    script = (HERE / "clickhouse.sql").read_text()
    start = script.index("ENGINE = Kafka")
    run(script[:start] + "ENGINE = Null" + script[script.index(";", start):])
    for stage, records, expected in stages():
        load(dump(records))
        check(stage, expected)
        run((HERE / "clickhouse-forget.sql").read_text())
        check(f"{stage} after clickhouse-forget.sql", expected)
    check_gone("clickhouse", {row[0] for row in rows("SELECT event_id FROM chat.facts")})
    load(f"no JSON\n{newer()}")
    if rows("SELECT count() FROM chat.set_aside") != [[2]]:
        sys.exit("clickhouse: expected exactly two records that were set aside")
    check("unreadable records", RESTARTED_TOTALS)


def check_spark(folder: pathlib.Path) -> None:
    from pyspark.sql import SparkSession

    sys.path.insert(0, str(HERE))
    sys.dont_write_bytecode = True
    import spark as sample

    lake = str(folder / "the lake")
    (folder / "topic").mkdir()
    session = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1)
    session = session.config("spark.ui.enabled", False).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def check(stage, expected):
        tables = sample.report(session, lake).items()
        views = {view: [tuple(row) for row in table.selectExpr(*COLUMNS[view].split(", ")).collect()] for view, table in tables}
        compare("spark", stage, expected, views)

    for number, (stage, records, expected) in enumerate(stages()):
        (folder / f"topic/{number}.txt").write_text(f"{dump(records)}no JSON\n{newer()}\n")
        records = session.readStream.text(str(folder / "topic"))
        sample.stream(session, records, lake).trigger(availableNow=True).start().awaitTermination()
        check(stage, expected)
        sample.delete_from_disk(session, lake)
        check(f"{stage} after `forget`", expected)
    stored = sample.stored(session, lake).select("event_id", "version").collect()
    check_gone("spark", {row.event_id for row in stored})
    for version in (None, 2):
        if sum(row.version == version for row in stored) != len(stages()):
            sys.exit(f"spark: not every record of version {version} was kept as text")
    session.stop()


def main() -> None:
    checks = {"duckdb": check_duckdb, "clickhouse": check_clickhouse, "spark": check_spark}
    for name in sys.argv[1:] or ["duckdb"]:
        with tempfile.TemporaryDirectory() as folder:
            checks[name](pathlib.Path(folder))


if __name__ == "__main__":
    main()
