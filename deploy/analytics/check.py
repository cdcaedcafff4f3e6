"""Runs the analytics samples over the golden records and fails on any wrong figure.

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

# Worked out by hand from the golden records. An agent is written as its name.
EXPECTED = {
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


def dump() -> str:
    """Every record twice, as a redelivery leaves them, and one field that a newer program added."""
    records = golden() + [{**record, "addedLater": [1]} for record in golden()]
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def agent_names() -> dict[str, str]:
    agents = {record["agentId"] for record in golden()}
    support = {record["agentId"] for record in golden() if record["teamId"]}
    return {agent: SUPPORT if agent in support else SHOP for agent in agents}


def compare(engine: str, view: str, rows) -> None:
    names = agent_names()

    def plain(value):
        if isinstance(value, (list, tuple)):
            return tuple(plain(item) for item in value)
        if value is None or isinstance(value, str):
            return names.get(value, value)
        return round(float(value), 6) if isinstance(value, (int, float)) else str(value)

    def in_order(table):
        return sorted((plain(row) for row in table), key=repr)

    found, expected = in_order(rows), in_order(EXPECTED[view])
    if found != expected:
        sys.exit(f"{engine}, {view}:\n  found    {found}\n  expected {expected}")
    print(f"{engine}: {view} is right")


def check_duckdb(folder: pathlib.Path) -> None:
    import duckdb

    script = (HERE / "duckdb.sql").read_text()
    (folder / "messages.ndjson").write_text(dump())
    database = duckdb.connect(str(folder / "chat.duckdb"))
    database.execute("SET VARIABLE messages_file = ?", [str(folder / "messages.ndjson")])
    for _ in range(2):  # the second load must change nothing
        database.execute(script)
    for view in EXPECTED:
        compare("duckdb", view, database.execute(f"SELECT {COLUMNS[view]} FROM {view}").fetchall())

    (folder / "newer.ndjson").write_text(json.dumps({**golden()[0], "version": 2}) + "\n")
    database.execute("SET VARIABLE messages_file = ?", [str(folder / "newer.ndjson")])
    try:
        database.execute(script)
    except duckdb.Error as error:
        assert "version" in str(error), error
        print("duckdb: a newer version is refused")
    else:
        sys.exit("duckdb: a record of an unknown version was read")


def check_clickhouse(folder: pathlib.Path) -> None:
    from chdb import session

    script = (HERE / "clickhouse.sql").read_text()
    start = script.index("ENGINE = Kafka")
    script = script[:start] + "ENGINE = Null" + script[script.index(";", start):]
    database = session.Session(str(folder / "clickhouse"))
    without_comments = "\n".join(line for line in script.splitlines() if not line.strip().startswith("--"))
    for statement in without_comments.split(";"):
        if statement.strip():
            database.query(statement)
    # JSON text in a JSON string is the one quoting that both languages share.
    lines = dump().splitlines() + ["no JSON", json.dumps({**golden()[0], "version": 2})]
    values = "".join(json.dumps({"record": line}) + "\n" for line in lines)
    database.query(f"INSERT INTO chat.message_queue FORMAT JSONEachRow {values}")
    for view in EXPECTED:
        answer = str(database.query(f"SELECT {COLUMNS[view]} FROM chat.{view}", "JSONCompactEachRow"))
        # ClickHouse writes 64-bit integers as text, so that JavaScript does not round them.
        rows = [[float(cell) if isinstance(cell, str) and cell.isdigit() else cell for cell in json.loads(line)]
                for line in answer.splitlines()]
        compare("clickhouse", view, rows)
    aside = str(database.query("SELECT count() FROM chat.set_aside", "TabSeparated")).strip()
    if aside != "2":
        sys.exit(f"clickhouse: {aside} records were set aside, not 2")
    print("clickhouse: what cannot be read is set aside")


def check_spark(folder: pathlib.Path) -> None:
    from pyspark.sql import SparkSession

    sys.path.insert(0, str(HERE))
    sys.dont_write_bytecode = True
    import spark as sample

    (folder / "topic").mkdir()
    (folder / "topic/records.txt").write_text(dump() + json.dumps({**golden()[0], "version": 2}) + "\n")
    session = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1)
    session = session.config("spark.ui.enabled", False).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    records = session.readStream.text(str(folder / "topic"))
    query = sample.stream(session, records, str(folder / "spark")).trigger(availableNow=True).start()
    query.awaitTermination()
    for view, table in sample.report(session, str(folder / "spark")).items():
        compare("spark", view, [tuple(row) for row in table.selectExpr(*COLUMNS[view].split(", ")).collect()])
    session.stop()


def main() -> None:
    checks = {"duckdb": check_duckdb, "clickhouse": check_clickhouse, "spark": check_spark}
    for name in sys.argv[1:] or ["duckdb"]:
        with tempfile.TemporaryDirectory() as folder:
            checks[name](pathlib.Path(folder))


if __name__ == "__main__":
    main()
