"""Spark on other machines: how the driver presents itself to a cluster, and what it asks for.

The driver runs here. Executors read Kafka, compute, and write the rows of big batches; commits and
checkpoints are made by the driver.
"""

import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from waybill_shared.contract.driver import SparkPlace
from waybill_shared.contract.errors import Problem, Retryable, UserError
from waybill_shared.contract.lifecycle_events import SqlGuard
from waybill_spark.driver.jvm.launch import AVRO_LIMITS
from waybill_spark.driver.jvm.session import open_session

STANDALONE: Final = "spark://"
CONNECT_TIMEOUT_S: Final = 5.0
LOGS: Final = "the logs of the master and of executors (work/app-…/N/stderr on workers) say why"
PROPERTY: Final = re.compile(r"\s*(?P<name>[^#\s=][^\s=]*)\s*=?\s*(?P<value>.*?)\s*")
AUTHENTICATE: Final = "spark.authenticate"
# What reads Kafka, and what files are opened with. The other jars are of use to the driver at most.
SHIPPED: Final = (
    "commons-pool2",
    "hadoop-bare-naked-local-fs",
    "kafka-clients",
    "spark-sql-kafka",
    "spark-token-provider-kafka",
)


class ClusterUnavailable(Retryable):
    """It does not answer, or gives nothing; the `hint` says what to look at."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def is_cluster(master: str) -> bool:
    return not master.startswith("local")


def cluster_conf(place: SparkPlace, jars: Path, properties: Mapping[str, str]) -> dict[str, str]:
    """Return settings that override those of a local Spark.

    Raise ClusterUnavailable if no master answers.
    """
    here = _own_address(place)
    if here is not None and not _is_loopback(here) and AUTHENTICATE not in properties:
        raise UserError([_open_to_strangers(here)])
    host = place.driver_host or here or socket.getfqdn()
    port = str(place.driver_port)  # if it is in use, Spark tries the next ones
    return {
        "spark.driver.host": host,
        "spark.driver.bindAddress": here or "0.0.0.0",
        "spark.driver.port": port,
        "spark.driver.blockManager.port": port,
        "spark.cores.max": str(place.cores_max),
        "spark.executor.memory": place.executor_memory,
        "spark.executor.extraJavaOptions": " ".join(AVRO_LIMITS),
        "spark.jars": ",".join(map(str, _jars_to_ship(jars))),
    }


def open_spark(
    place: SparkPlace, properties: Mapping[str, str], sql_guard: SqlGuard
) -> SparkSession:
    """Open the session, or raise ClusterUnavailable.

    Spark itself asks a standalone master three times, 20 s each, and then only stops.
    """
    try:
        return open_session(properties, sql_guard)
    except Py4JError as error:
        if not is_cluster(place.master):
            raise
        hint = (
            f"it must be a master of Spark {pyspark.__version__}, at its own port (usually 7077),"
            " not its page's, with the secret of WAYBILL_SPARK_CONF_FILE if it asks for one;"
            f" {LOGS}; it is tried again"
        )
        message = f"{place.master} (WAYBILL_SPARK_MASTER) did not take the application or ended it"
        raise ClusterUnavailable(message, hint=hint) from error


def read_properties(file: Path | None) -> dict[str, str]:
    """Read properties as in spark-defaults.conf: a name, white space or `=`, a value."""
    if file is None:
        return {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        message = f"WAYBILL_SPARK_CONF_FILE: {file} cannot be read: {error}"
        raise UserError([Problem(message=message)]) from error
    found = [PROPERTY.fullmatch(line) for line in lines]
    return {each["name"]: each["value"] for each in found if each is not None}


def refuse_reserved(properties: Iterable[str], ours: Iterable[str]) -> None:
    """Raise UserError for properties that Waybill sets: its guarantees depend on them, or there is
    a setting for them.
    """
    if reserved := sorted(set(properties) & set(ours)):
        message = f"WAYBILL_SPARK_CONF_FILE: {', '.join(reserved)} is Waybill's to set"
        hint = "take it out of the file; the other WAYBILL_SPARK_* say what can be chosen"
        raise UserError([Problem(message=message, hint=hint)])


def _own_address(place: SparkPlace) -> str | None:
    """Return the local address from which the master is reached; None if the master is not one to
    connect to.
    """
    if not place.master.startswith(STANDALONE):
        return None
    reasons = []
    for address in place.master.removeprefix(STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S) as connection:
                return str(connection.getsockname()[0])
        except OSError as error:
            reasons.append(f"{address}: {error.strerror or error}")
    hint = "start it, or correct WAYBILL_SPARK_MASTER and restart the stage_runner"
    message = f"Spark's master (WAYBILL_SPARK_MASTER) does not answer: {'; '.join(reasons)}"
    raise ClusterUnavailable(message, hint=f"{hint}; it is tried again")


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def _open_to_strangers(here: str) -> Problem:
    return Problem(
        message=(
            f"the driver would let anybody in who reaches {here}: {AUTHENTICATE} is not decided"
        ),
        hint=(
            f"write `{AUTHENTICATE} true` and `{AUTHENTICATE}.secret …`, the master's and the"
            f" workers' own, or `{AUTHENTICATE} false` if this network is closed, into a file that"
            " WAYBILL_SPARK_CONF_FILE names"
        ),
    )


def _jars_to_ship(jars: Path) -> list[Path]:
    return [jar for jar in sorted(jars.glob("*.jar")) if jar.name.startswith(SHIPPED)]
