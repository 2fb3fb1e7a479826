"""Spark's Kafka source loses half a second in each small batch, to one setting of its consumer.

Before each batch Spark asks the broker how far the topic goes. It asks on the connection on which
its own consumer has just sent a fetch ahead, which the broker holds until there is data or until
`fetch.max.wait.ms` (500 by default) is over; requests of one connection are answered in order.

    pip install pyspark==4.1.3 confluent-kafka
    python fetch_wait.py --kafka localhost:9092

sends one record at a time through two streaming queries, Kafka to Kafka, that differ in this
setting alone, in turns, and prints how long they took until they could be read again. Needs Java 17
and a broker; creates two topics for each query and deletes them. `--jars` names a folder with
Spark's Kafka connector, else Spark fetches it.
"""

import argparse
import statistics
import tempfile
import time
import uuid
from pathlib import Path

import pyspark
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
SETTING = "kafka.fetch.max.wait.ms"
QUERIES: dict[str, dict[str, str]] = {"as Spark comes": {}, f"{SETTING}=5": {SETTING: "5"}}
WARM_UP = 3  # records that are not counted
TIMEOUT_S = 60.0


class Query:
    """A running query from one new topic to another, with one partition each."""

    def __init__(
        self, spark: SparkSession, kafka: str, folder: Path, options: dict[str, str]
    ) -> None:
        name = f"fetch-wait-{uuid.uuid4().hex[:8]}"
        self.topics = [f"{name}.in", f"{name}.out"]
        self._admin = AdminClient({"bootstrap.servers": kafka})
        for made in self._admin.create_topics([NewTopic(t, 1, 1) for t in self.topics]).values():
            made.result()
        self._producer = Producer({"bootstrap.servers": kafka, "linger.ms": 0})
        self._consumer = Consumer({"bootstrap.servers": kafka, "group.id": name})
        self._consumer.assign([TopicPartition(self.topics[1], 0, 0)])
        records = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", kafka)
            .option("subscribe", self.topics[0])
            .option("startingOffsets", "earliest")
            .options(**options)
            .load()
        )
        self._running = (
            records.selectExpr("value")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", kafka)
            .option("topic", self.topics[1])
            .option("checkpointLocation", str(folder / name))
            .start()
        )

    def seconds(self) -> float:
        """From the produce of one record until it can be read behind the query."""
        began = time.perf_counter()
        self._producer.produce(self.topics[0], b"x")
        self._producer.flush()
        message = self._consumer.poll(TIMEOUT_S)
        if message is None or message.error():
            raise SystemExit(f"nothing came out of {self.topics[1]}: {self._running.exception()}")
        return time.perf_counter() - began

    def stop(self) -> None:
        self._running.stop()
        self._consumer.close()
        for gone in self._admin.delete_topics(self.topics).values():
            gone.result()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kafka", default="localhost:9092", help="bootstrap servers")
    parser.add_argument("--jars", type=Path, help="folder with the connector's jars")
    parser.add_argument("--records", type=int, default=30, help="through each query (default 30)")
    chosen = parser.parse_args()
    spark = session(chosen.jars)
    with tempfile.TemporaryDirectory() as folder:
        queries = {
            name: Query(spark, chosen.kafka, Path(folder), options)
            for name, options in QUERIES.items()
        }
        times: dict[str, list[float]] = {name: [] for name in queries}
        for _ in range(WARM_UP + chosen.records):
            for name, query in queries.items():
                times[name].append(query.seconds())
        for query in queries.values():
            query.stop()
    spark.stop()
    for name, seconds in times.items():
        counted = [1000 * each for each in seconds[WARM_UP:]]
        print(
            f"{name:28} median {statistics.median(counted):6.0f} ms,"
            f" {min(counted):.0f} to {max(counted):.0f}, n = {len(counted)}"
        )


def session(jars: Path | None) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if jars is None:
        builder = builder.config("spark.jars.packages", CONNECTOR)
    else:
        builder = builder.config("spark.jars", ",".join(map(str, sorted(jars.glob("*.jar")))))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


if __name__ == "__main__":
    main()
