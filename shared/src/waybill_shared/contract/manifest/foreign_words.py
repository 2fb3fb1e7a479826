"""Words of other systems that people write in a manifest or in its SQL: what each is, that it is
not here, and the nearest way. `foreign` finds them; docs/other-systems.md is made of these rows."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Spot(StrEnum):
    """The place of a word; the value is for people."""

    TOP = "key of a manifest"
    INPUT = "key of an input"
    STAGE = "key of a stage"
    STEP = "key of a step"
    SINK = "key of a sink"
    SETTINGS = "key of a sink's settings"
    TRIGGER = "trigger"
    STATE = "state"
    FORMAT = "format of an input or a file"
    SINK_FORMAT = "format of a sink"
    CONNECTOR = "key of a connector"
    TRANSPORT = "transport of a connector"
    TABLE = "word in `CREATE TABLE`"
    AFTER = "word after the columns of a table"
    PROPERTY = "property in `WITH`"
    QUERY = "beginning of a step's SQL"
    TABLES = "statement among tables"
    FILE = "beginning of a file"
    TEMPLATE = "mark of a template"
    FUNCTION = "function"


BARE: Final = frozenset({
    Spot.TABLE, Spot.AFTER, Spot.QUERY, Spot.TABLES, Spot.FILE, Spot.TEMPLATE, Spot.FUNCTION,
})  # fmt: skip
"""Spots at which words are shown without quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A row: words that mean the same, and where they are found."""

    words: tuple[str, ...]
    spots: tuple[Spot, ...]
    why: str
    """What it is, and that it is not here."""
    way: str
    """What to write instead."""
    whole: bool = False
    """True if the complete text is another system's, so that all other errors are consequences."""
    ignored: bool = False
    """True if it is accepted without effect, and a warning reports it."""

    def tell(self, spot: Spot, word: str) -> tuple[str, str]:
        """Return a message and a hint."""
        shown = f"WITH ({word!r})" if spot is Spot.PROPERTY else repr(word)
        return f"{word if spot in BARE else shown} is not accepted: {self.why}", self.way


def _row(
    words: str, *spots: Spot, why: str, way: str, whole: bool = False, ignored: bool = False
) -> Foreign:
    """Return a row; its words are divided by bars."""
    split = tuple(words.split("|"))
    return Foreign(words=split, spots=spots, why=why, way=way, whole=whole, ignored=ignored)


STATEMENTS: Final = (Spot.QUERY, Spot.TABLES, Spot.FILE)
LATE: Final = "no stage has event time yet, and a row is processed however late it comes"
WINDOWS: Final = (
    "aggregates over windows need state, and no stage has state yet",
    "write the rows to a table, and aggregate them there",
)
UNCHECKED: Final = "nothing checks one table against another here"
COMPUTED: Final = "no column of an input is computed"
FILES: Final = (
    "files are not written yet",
    "write an Iceberg table, which has Parquet files: iceberg: {table: raw.orders}",
)
BY_TOPIC: Final = "write a topic, and let a connector read it: kafka: {topic: orders.out}"
BY_TABLE: Final = "write a table that others can read: iceberg: {table: raw.orders}"
BY_INPUT: Final = "name the topic in the input: kafka: {topic: orders}"
BEGIN: Final = "`waybill init NAME` writes a manifest to begin with"
IN_STEPS: Final = "inputs read topics, SQL is in steps, and sinks write"

FOREIGN_WORDS: Final[tuple[Foreign, ...]] = (
    # Texts of other systems.
    _row("workflow|dag|stackSpec|stack|job|jobs", Spot.TOP, whole=True,
         why="this is a workflow of DataOS Flare, and those are not read yet",
         way=f"{IN_STEPS}: make a step of each part of its `sequence`; {BEGIN}"),
    _row("connector.class|config|tasks.max", Spot.TOP, whole=True,
         why="this configures a connector of Kafka Connect, and Waybill runs no such connectors",
         way="leave it with Kafka Connect; an input reads the topic that it writes:"
         " `waybill init NAME --from TOPIC`"),
    _row("models|profile|model-paths", Spot.TOP, whole=True,
         why="this is of dbt, and projects of dbt are not read here",
         way=f"make a step of the SQL of each model, as `dbt compile` prints it; {BEGIN}"),
    _row("apiVersion", Spot.TOP, whole=True,
         why="this is a resource of Kubernetes, and no manifest of Waybill",
         way=f"give the manifest alone to `waybill apply`; {BEGIN}"),
    _row("program_code|udf_rust", Spot.TOP, whole=True,
         why="this is a pipeline of Feldera, as its API has it, and that is not read here",
         way="put its SQL into a file: `waybill convert FILE` makes inputs of its tables, and each"
         " view is a step"),
    _row("query", Spot.TOP, whole=True,
         why="a pipeline as one SQL query, as in Arroyo, is not read yet",
         way="`waybill convert FILE` makes inputs of its tables, and each SELECT is a step"),
    _row("destination", Spot.TOP, whole=True,
         why="this is a pipeline of Datris, and those are not read yet",
         way=f"{IN_STEPS}; {BEGIN}"),
    _row("route|pipeline", Spot.TOP, whole=True,
         why="this is a pipeline of Flink CDC or of Redpanda Connect, and those are not read here",
         way=f"{IN_STEPS}; {BEGIN}"),
    _row("libraries", Spot.TOP, whole=True,
         why="this is a pipeline of Spark Declarative Pipelines, and those are not read here",
         way=f"{IN_STEPS}; {BEGIN}"),
    _row("CREATE TABLE", Spot.QUERY, Spot.FILE,
         why="a table is no query, and no manifest",
         way="an input may have it as its `schema`; `waybill convert FILE` makes a manifest of it"),
    _row("CREATE VIEW|CREATE MATERIALIZED VIEW|CREATE MATERIALIZED TABLE|CREATE STREAMING TABLE",
         *STATEMENTS, why="views have no statement here",
         way="write its query as a step of a stage"),
    _row("CREATE STREAM|CREATE SOURCE", *STATEMENTS, why="streams have no statement here",
         way="write CREATE TABLE with its columns, without WITH: an input has it as `schema`"),
    _row("INSERT INTO|INSERT OVERWRITE|CREATE SINK|EXECUTE STATEMENT|MERGE INTO|COPY INTO",
         *STATEMENTS, why="SQL writes nothing here: sinks do",
         way="write its query as a step, and where the rows go as a sink of the stage"),
    _row("CREATE FUNCTION|CREATE AGGREGATE|ADD JAR", *STATEMENTS,
         why="functions of your own are not there yet",
         way="write it in SQL: docs/sql.md lists the functions"),
    _row("CREATE CATALOG|CREATE CONNECTION|CREATE DATABASE|CREATE SCHEMA|USE CATALOG|USE",
         *STATEMENTS, why="places are not made in SQL",
         way="name them in the file of connections: docs/connections.md"),
    _row("SET", *STATEMENTS, why="no settings are set in SQL",
         way="leave it out: the operator sets those of Spark"),
    _row("SELECT|WITH", Spot.TABLES, Spot.FILE, why="a query alone is no manifest, and no table",
         way=f"write it as a step of a stage, steps: [{{name: …, sql: …}}]; {BEGIN}"),
    _row("import|from pyspark", Spot.FILE, why="this is Python, which is not run here yet",
         way=f"{IN_STEPS}; {BEGIN}"),
    _row("{{|{%|{#", Spot.TEMPLATE,
         why="this is a template, as of dbt (`config`, `ref`), and templates are not filled in",
         way="leave `config` out, and name views as they are: FROM orders, not `ref('orders')`"),
    # Life and size.
    _row("cron|cronExpression", Spot.TOP, why="the times of a pipeline are in its schedule",
         way="schedule: {cron: 0 3 * * *, timezone: Europe/Berlin}"),
    _row("schedule|cron|cronExpression", Spot.STAGE,
         why="a pipeline has a schedule, and its stages have none",
         way="write it at the top: schedule: {cron: 0 3 * * *}"),
    _row("paused|suspended", Spot.STATE, why="there is no pause yet",
         way="write stopped: what comes in waits, and `waybill start NAME` goes on from there"),
    _row("paused|suspend|stop", Spot.TOP, Spot.STAGE, Spot.CONNECTOR,
         why="there is no pause yet",
         way="leave it out; state: stopped stops the whole pipeline"),
    _row("start_after", Spot.CONNECTOR, why="connectors do not wait for each other",
         way="leave it out: each file is fetched at once"),
    _row("once", Spot.TRIGGER, why="a trigger is a key with a value",
         way="trigger: {once: true}"),
    _row("availableNow|available-now", Spot.TRIGGER, why="a trigger is a key with a value",
         way="trigger: {availableNow: true}"),
    _row("continuous", Spot.TRIGGER, why="a stage that runs without batches is not there yet",
         way="leave the trigger out: batches come as fast as they can; or {processingTime: …}"),
    _row("instances|shufflePartitions", Spot.TOP,
         why="a pipeline has one driver, and says how many tasks it runs at once",
         way="parallelism: 4; a batch has a task for each partition of its inputs"),
    _row("parallelism|instances|shufflePartitions", Spot.STAGE, Spot.SINK,
         why="all stages of a pipeline share its tasks",
         way="write it at the top: parallelism: 4"),
    _row("driver|executor|resources|sparkConf|spark|runtime_config|compute", Spot.TOP, Spot.STAGE,
         why="a manifest does not say yet what a pipeline may use of a machine",
         way="the operator sets it for all pipelines: docs/spark-cluster.md"),
    _row("checkpoint|checkpointLocation|checkpointInterval|checkpoint_location",
         Spot.TOP, Spot.INPUT, Spot.STAGE, Spot.SINK, Spot.SETTINGS, Spot.PROPERTY,
         why="stages keep their checkpoints themselves",
         way="leave it out: a stage goes on where its sinks are"),
    _row("outputMode|saveMode|output_mode", Spot.TOP, Spot.STAGE, Spot.SINK, Spot.SETTINGS,
         why="a stage has no result to put out again: it writes each row once",
         way="leave it out; the mode of a sink (append, upsert, overwrite) is in its settings"),
    # What computes.
    _row("python|pyspark|udf|udfs|functions|classpath|notebook|script",
         Spot.TOP, Spot.INPUT, Spot.STAGE, Spot.STEP,
         why="Python and functions of your own are not run in a pipeline yet",
         way="write it in SQL: docs/sql.md lists the functions"),
    _row("sqlFile|file|sql_file|sequence|commands", Spot.STAGE, Spot.STEP,
         why="SQL is in the manifest, one query for a step",
         way="steps: [{name: …, sql: …}]"),
    _row("sql|query|select|transform|transforms", Spot.STAGE,
         why="the SQL of a stage is in its steps", way="steps: [{name: …, sql: …}]"),
    _row("window|windows|groupBy|group_by|aggregate|aggregations|join|joins|distinct|deduplicate",
         Spot.STAGE, Spot.STEP, why=WINDOWS[0], way=WINDOWS[1]),
    _row("tumble|hop|cumulate|session|tumbling|sliding", Spot.FUNCTION,
         why=WINDOWS[0], way=WINDOWS[1]),
    _row("proctime|current_watermark|descriptor", Spot.FUNCTION,
         why="no stage has the time attributes of Flink",
         way="current_timestamp() is the time of the batch"),
    _row("watermark|lateness|eventTime|event_time",
         Spot.INPUT, Spot.STAGE, Spot.STEP, Spot.PROPERTY, why=LATE, way="leave it out"),
    _row("materialized", Spot.TOP, Spot.INPUT, Spot.STAGE, Spot.STEP, Spot.SINK, Spot.SETTINGS,
         why="views are not kept here, as of dbt or Feldera: what is kept is what sinks write",
         way="leave it out, and give the stage a sink for the rows to keep"),
    _row("materialized", Spot.PROPERTY, ignored=True,
         why="the rows are in the topic of the input, and no query reads them there",
         way="give a stage a sink for the rows that are to be read"),
    # What is read.
    _row("dataset|depot|isStream|schemaType", Spot.INPUT, Spot.SINK,
         why="this is of DataOS Flare (`dataos://…`), and depots are not known here",
         way="an input names its topic, kafka: {topic: …}, and a sink its topic or table"),
    _row("outputs|output", Spot.TOP, Spot.STAGE, why="what a stage writes are its sinks",
         way="sinks: [{name: lake, iceberg: {table: raw.orders}}]"),
    _row("sink|sinks", Spot.TOP, why="sinks are in a stage",
         way="stages: [{name: load, inputs: [orders], sinks: […]}]"),
    _row("source|sources", Spot.TOP, why="what a pipeline reads are its inputs",
         way="inputs: [{name: orders, kafka: {topic: orders}, schema: …}]"),
    _row("topic|topics|subscribe|bootstrapServers|bootstrap.servers|bootstrap_servers|connector|"
         "options|properties|path|type", Spot.INPUT,
         why="an input is a topic of the Kafka that Waybill uses", way=BY_INPUT),
    _row("fields|columns", Spot.INPUT, why="the columns of an input are one text",
         way='schema: "order_id BIGINT, amount DOUBLE"'),
    _row("kafka_input|redpanda", Spot.TRANSPORT,
         why="connectors fetch files, and the topic of the input is read without one",
         way=BY_INPUT),
    _row("s3_input", Spot.TRANSPORT, why="a table as SQL names no store",
         way="write the connector in the manifest: url: s3://BUCKET/KEY, connection: NAME"),
    _row("delta_table_input|iceberg_input|postgres_input|postgres_cdc_input|debezium_input|datagen|"
         "pub_sub_input|nats_input", Spot.TRANSPORT,
         why="connectors fetch files, and nothing else yet",
         way="let another program write the topic of the input"),
    _row("parquet|orc|delta|iceberg|xlsx|hudi", Spot.FORMAT,
         why="files of columns are not read yet", way="take json, csv or avro"),
    _row("protobuf|proto|xml|text|msgpack|thrift", Spot.FORMAT, why="it is not read yet",
         way="take json, csv or avro; raw takes any bytes, for SQL to take apart"),
    _row("kafkajson|ndjson|jsonl|json-lines|json-schema|jsonschema|json-registry", Spot.FORMAT,
         why="a record of a topic is one value", way="write json"),
    _row("debezium-json|debezium|canal-json|maxwell-json|ogg-json", Spot.FORMAT,
         why="events of changes are not read from a topic yet",
         way="a connector of a file takes updateFormat: debezium, with format: json"),
    _row("kafkaavro|avro-confluent|confluent-avro|avro-registry", Spot.FORMAT,
         why="schema registries are not asked yet",
         way="write avro, and the schema itself as avroSchema"),
    # What is written.
    _row("delta|deltalake|delta_table|hudi|paimon|ducklake", Spot.SINK,
         why="tables of this kind are not written yet", way=BY_TABLE),
    _row("parquet|orc|csv|json|avro|text|file|files|filesystem|s3|gcs|abfss|hdfs|local",
         Spot.SINK, why=FILES[0], way=FILES[1]),
    _row("jdbc|mysql|mariadb|mssql|sqlserver|oracle|db2|sqlite", Spot.SINK,
         why="of databases, only PostgreSQL is written yet",
         way=f"postgres: {{connection: …, table: …}}; for another one {BY_TOPIC}"),
    _row("postgresql|pg|timescale", Spot.SINK, why="the kind is called postgres",
         way="postgres: {connection: warehouse, table: public.orders}"),
    _row("snowflake|bigquery|redshift|databricks|clickhouse|hive|duckdb|trino", Spot.SINK,
         why="it is not written straight yet", way=BY_TABLE),
    _row("mongodb|mongo|cassandra|redis|elasticsearch|opensearch|dynamodb|pulsar|kinesis|eventhubs|"
         "rabbitmq|nats|pubsub|mqtt", Spot.SINK, why="it is not written yet", way=BY_TOPIC),
    _row("http|webhook|rest|foreachBatch|foreach|forEachBatchMode", Spot.SINK,
         why="no sink calls an address, or code of yours",
         way="write a topic for it: kafka: {topic: orders.out}; watches send the outcome of a token"
         " to a webhook"),
    _row("print|stdout|preview|showRows|log|blackhole|memory|noop", Spot.SINK,
         why="the kind is called console", way="console: {rows: 20} prints rows to the log"),
    _row("upsert-kafka|upsertKafka|kafka_upsert", Spot.SINK, why="the kind is called kafka",
         way="kafka: {topic: orders.out, key: order_id}, and a topic that Kafka compacts"),
    _row("format|type|connector|options|path|mode|table|topic|schema", Spot.SINK,
         why="the kind of a sink is a key, and what it writes to is in there",
         way="for example {name: lake, iceberg: {table: raw.orders}}"),
    _row("format|fileFormat|file_format|compression|location|path|url|catalog|warehouse",
         Spot.SETTINGS, why="where and how files are written, its connection and properties say",
         way="connection: NAME (docs/connections.md), and properties of an iceberg sink"),
    _row("bootstrapServers|bootstrap.servers|bootstrap_servers|brokers|acks", Spot.SETTINGS,
         why="sinks write to the Kafka that Waybill uses", way="leave it out"),
    _row("avro|csv|parquet|protobuf|raw|text|avro-confluent|debezium-json|kafkaavro",
         Spot.SINK_FORMAT, why="rows are written to topics as JSON only yet", way="write json"),
    _row("kafkajson|json-lines|ndjson|jsonl", Spot.SINK_FORMAT,
         why="a record of a topic is one JSON object", way="write json"),
    # In a table as SQL.
    _row("connector|connector.type|type|source|kafka_topic|topic|bootstrap_servers|"
         "bootstrap.servers|properties.bootstrap.servers|scan.startup.mode|source.offset|"
         "properties.group.id", Spot.PROPERTY,
         why="this is a connector of Flink, Arroyo or ksqlDB, and an input is always a topic",
         way=f"leave it out, and {BY_INPUT}"),
    _row("format|value.format|value_format|key.format|json.unstructured|bad_data", Spot.PROPERTY,
         why="how records are written is said by the input",
         way="leave it out, and write format: json in the input"),
    _row("append_only|skip_unused_columns|expected_size", Spot.PROPERTY,
         why="it tunes Feldera's own store", way="leave it out"),
    _row("LATENESS|WATERMARK", Spot.TABLE, why=LATE, way="leave it out"),
    _row("DEFAULT", Spot.TABLE, why="a column without a value is null",
         way="leave it out, and write COALESCE(column, value) in a step"),
    _row("AS|GENERATED|METADATA|HEADER", Spot.TABLE, why=COMPUTED,
         way="leave it out, and compute it in a step"),
    _row("CHECK", Spot.TABLE, why="a table checks no values",
         way="leave it out, and write a rule: expectations: [{name: …, expect: …}]"),
    _row("UNIQUE", Spot.TABLE, why="nothing compares the rows of an input",
         way="leave it out: a sink with mode: upsert keeps one row for each of its keys"),
    _row("REFERENCES|FOREIGN|CONSTRAINT", Spot.TABLE, why=UNCHECKED, way="leave it out"),
    _row("COLLATE", Spot.TABLE, why="texts are compared by their bytes", way="leave it out"),
    _row("COMMENT", Spot.TABLE, Spot.AFTER, why="tables and columns have no comments",
         way="write it as -- a comment"),
    _row("USING|STORED|ROW|LOCATION|OPTIONS|TBLPROPERTIES|CLUSTERED|CLUSTER", Spot.AFTER,
         why="a table says what an input is, not where files are",
         way="leave it out; what is written to is a sink"),
    _row("PARTITIONED|DISTRIBUTED|PARTITION", Spot.AFTER,
         why="an input is not partitioned by its columns",
         way="leave it out; an iceberg sink has partitionBy"),
)  # fmt: skip
