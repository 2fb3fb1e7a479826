"""Which of PySpark's jars, and which of its folders, nothing here uses.

A driver's class path has none of these jars. The environment of a clone keeps only those of Hive,
with which tests start a metastore. What a setting may ask for is used: masters on YARN and
Kubernetes, TLS between processes.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

HIVE: Final = "Hive as Spark's catalog, its server and its database: catalogs are PyIceberg's"
UNUSED_JARS: Final[Mapping[str, tuple[str, ...]]] = {
    "MLlib and GraphX": (
        "JLargeArrays-*", "JTransforms-*", "algebra_*", "arpack*", "blas-*", "breeze*",
        "cats-kernel_*", "lapack-*", "spark-graphx_*", "spark-mllib*", "spire*",
    ),
    "Spark Connect and its pipelines: drivers have a session of their own": (
        "spark-connect_*", "spark-pipelines_*",
    ),
    "the Scala shell": ("jline-*", "scala-compiler-*", "spark-repl_*"),
    HIVE: (
        "HikariCP-*", "ST4-*", "antlr-runtime-*", "commons-dbcp-*", "commons-pool-1.*",
        "datanucleus-*", "derby*", "hive-beeline-*", "hive-cli-*", "hive-common-*", "hive-exec-*",
        "hive-jdbc-*", "hive-metastore-*", "hive-serde-*", "hive-service-rpc-*", "hive-shims-*",
        "javax.jdo-*", "javolution-*", "jdo-api-*", "jpam-*", "jta-*", "libfb303-*",
        "libthrift-*", "opencsv-*", "spark-hive*", "super-csv-*", "transaction-api-*",
    ),
    "RocksDB, with which Spark can keep state: no stage has any": ("rocksdbjni-*",),
    "QUIC, which nothing of Spark speaks": ("netty-codec-native-quic-*",),
}  # fmt: skip
"""Patterns of file names, by what the jars are for."""

UNUSED_FOLDERS: Final = ("examples", "ml", "mllib", "pandas", "tests")
"""Folders of PySpark's own package."""


def used(jar: str) -> bool:
    """Return True if a driver's class path has PySpark's jar of that file name."""
    return not any(_is_of(jar, group) for group in UNUSED_JARS)


def kept(jar: str) -> bool:
    """Return True if the environment of a clone has PySpark's jar of that file name."""
    return used(jar) or _is_of(jar, HIVE)


def _is_of(jar: str, group: str) -> bool:
    return any(fnmatchcase(jar, pattern) for pattern in UNUSED_JARS[group])
