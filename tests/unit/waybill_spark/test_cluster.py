"""A driver on a Spark cluster: what it asks for, what it refuses, and what it says meanwhile."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from waybill_shared.contract.driver import SparkPlace
from waybill_shared.contract.errors import UserError
from waybill_shared.contract.words import Obstacle
from waybill_shared.settings.service import read_settings
from waybill_spark.driver.jvm.cluster import (
    ClusterUnavailable,
    cluster_conf,
    is_cluster,
    read_properties,
    refuse_reserved,
)
from waybill_spark.driver.jvm.executors import LASTS_S, PATIENCE_S, Executors
from waybill_stage_runner.settings import Settings


def place(master: str, *, driver_host: str | None = None) -> SparkPlace:
    return SparkPlace(
        master=master,
        cores_max=3,
        executor_memory="2g",
        heap="1g",
        driver_host=driver_host,
        driver_port=0,
        executor_python=None,
        conf_file=None,
    )


@pytest.fixture
def master() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"spark://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("url", "cluster"),
    [
        ("local", False),
        ("local[2]", False),
        ("local[*]", False),
        ("spark://spark.example:7077", True),
        ("spark://one:7077,two:7077", True),
        ("yarn", True),
        ("k8s://https://kubernetes.example:6443", True),
    ],
)
def test_master_is_here_or_a_cluster(
    url: str, cluster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_SPARK_MASTER", url)
    assert is_cluster(read_settings(Settings).spark_master) is cluster


@pytest.mark.parametrize("url", ["lokal[2]", "spark://no.port", "http://spark.example:8080", ""])
def test_master_that_is_none_is_refused_when_the_runner_starts(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_SPARK_MASTER", url)
    with pytest.raises(UserError, match=r"WAYBILL_SPARK_MASTER: .*local\[N\] nor spark://"):
        read_settings(Settings)


def test_application_takes_its_share_and_brings_what_reads_kafka(
    master: str, tmp_path: Path
) -> None:
    for name in ("kafka-clients-3.jar", "iceberg-spark-runtime-1.jar", "spark-sql-kafka-0-10.jar"):
        (tmp_path / name).touch()
    conf = cluster_conf(place(master), tmp_path, {})
    shipped = [Path(jar).name for jar in conf["spark.jars"].split(",")]
    assert shipped == ["kafka-clients-3.jar", "spark-sql-kafka-0-10.jar"]
    assert (conf["spark.cores.max"], conf["spark.executor.memory"]) == ("3", "2g")
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"


def test_host_that_workers_know_is_told_and_another_one_bound(master: str, tmp_path: Path) -> None:
    conf = cluster_conf(place(master, driver_host="runner.example"), tmp_path, {})
    assert conf["spark.driver.host"] == "runner.example"
    assert conf["spark.driver.bindAddress"] == "127.0.0.1"


def test_any_of_several_masters_will_do(master: str, tmp_path: Path) -> None:
    assert cluster_conf(place(f"spark://127.0.0.1:1,{master[8:]}"), tmp_path, {})


def test_master_that_is_not_there_is_named_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(ClusterUnavailable, match="WAYBILL_SPARK_MASTER") as raised:
        cluster_conf(place("spark://127.0.0.1:1"), tmp_path, {})
    assert str(raised.value).endswith("127.0.0.1:1: Connection refused")
    assert "correct WAYBILL_SPARK_MASTER" in raised.value.hint


def test_driver_opens_no_port_to_others_without_a_decision(tmp_path: Path) -> None:
    outside = own_address()
    with socket.create_server((outside, 0)) as server:
        there = place(f"spark://{outside}:{server.getsockname()[1]}")
        with pytest.raises(UserError, match=r"spark\.authenticate is not decided") as raised:
            cluster_conf(there, tmp_path, {})
        assert "WAYBILL_SPARK_CONF_FILE" in (raised.value.problems[0].hint or "")
        conf = cluster_conf(there, tmp_path, {"spark.authenticate": "false"})
    assert conf["spark.driver.host"] == outside


def own_address() -> str:
    """Another than loopback's; connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback's")
        return str(probe.getsockname()[0])


def test_properties_are_read_as_in_spark_defaults(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_text(
        "# ours\n\nspark.authenticate  true\nspark.authenticate.secret=a=b c\n spark.x\ty \n"
    )
    assert read_properties(file) == {
        "spark.authenticate": "true",
        "spark.authenticate.secret": "a=b c",
        "spark.x": "y",
    }
    assert read_properties(None) == {}


def test_properties_that_are_not_there_and_those_that_are_ours_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"WAYBILL_SPARK_CONF_FILE: .*No such file"):
        read_properties(tmp_path / "spark.conf")
    with pytest.raises(UserError, match=r"spark\.speculation is Waybill's to set"):
        refuse_reserved(["spark.speculation", "spark.x"], ["spark.speculation"])


class Cluster:
    """What a cluster gives one application, at a time that the test chooses."""

    def __init__(self, *counts: int | None) -> None:
        self.counts = list(counts)
        self.now_s = 0.0
        self.cancelled = False

    def executors(self) -> int | None:
        return self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]

    def cancel(self) -> None:
        self.cancelled = True

    def watched(self) -> Executors:
        return Executors(self, place("spark://m:7077"), now_s=lambda: self.now_s)


def test_driver_without_executors_says_so_and_no_more_when_it_has_some() -> None:
    cluster = Cluster(1)
    executors = cluster.watched()
    assert executors.look() is None
    cluster.counts = [0]
    assert executors.look() is None
    cluster.now_s = LASTS_S
    assert executors.look() == Obstacle.NO_SPARK_EXECUTOR
    cluster.counts = [1]
    assert executors.look() is None
    cluster.counts = [0]
    cluster.now_s = PATIENCE_S
    assert executors.look() is None, "the time begins anew"


def test_driver_that_was_without_executors_for_long_ends_and_names_the_settings() -> None:
    cluster = Cluster(0)
    executors = cluster.watched()
    executors.look()
    cluster.now_s = PATIENCE_S
    with pytest.raises(ClusterUnavailable, match=r"spark://m:7077 gave no executor") as raised:
        executors.look()
    for setting in ("CORES_MAX", "EXECUTOR_MEMORY", "DRIVER_HOST"):
        assert f"WAYBILL_SPARK_{setting}" in raised.value.hint


def test_application_that_the_cluster_has_ended_ends_the_driver() -> None:
    with pytest.raises(ClusterUnavailable, match="has ended the application"):
        Cluster(None).watched().look()


def test_start_waits_for_an_executor_and_tells_meanwhile() -> None:
    cluster = Cluster(0, 0, 0, 0, 1)
    told: list[str | None] = []
    executors = cluster.watched()
    executors.look()
    cluster.now_s = LASTS_S
    executors.await_first(threading.Event(), told.append)
    assert told == [Obstacle.NO_SPARK_EXECUTOR, None]


def test_start_that_is_stopped_waits_no_longer() -> None:
    stop = threading.Event()
    stop.set()
    Cluster(0).watched().await_first(stop, lambda word: pytest.fail(f"told {word}"))


@pytest.mark.parametrize(("count", "given_up"), [(0, True), (1, False), (None, False)])
def test_only_a_batch_that_nobody_computes_is_given_up(count: int | None, given_up: bool) -> None:
    cluster = Cluster(count)
    cluster.watched().give_up()
    assert cluster.cancelled is given_up
