"""A Hive metastore on loopback: that of the jars which come with PySpark, with tables in Derby."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from integration.waiting import eventually
from waybill_local.java import find_java
from waybill_local.ports import accepts, pick

JARS: Final = Path(pyspark.__file__).parent / "jars"
METASTORE: Final = "org.apache.hadoop.hive.metastore"
WITHIN_S: Final = 60.0
OPENED: Final = [
    f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "net", "util")
]
LOG: Final = """
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
"""


def settings(folder: Path) -> dict[str, str]:
    return {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",  # the others are not among the jars
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": f"{folder}/warehouse",
        "hive.async.log.enabled": "false",
    }


@contextmanager
def serving_hive(folder: Path) -> Iterator[str]:
    """Its address."""
    lines = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>"
        for name, value in settings(folder).items()
    )
    (folder / "hive-site.xml").write_text(f"<configuration>{lines}</configuration>")
    (folder / "hive-log4j2.properties").write_text(LOG)
    classes, java = f"{folder}:{JARS}/*", str(find_java().path)
    options = [*OPENED, f"-Dderby.stream.error.file={folder}/derby.log"]
    make_tables_of_locks(classes, java, options)
    port = pick({"hive": 0})["hive"]
    with (folder / "log").open("w") as log:
        command = [java, "-cp", classes, *options, f"{METASTORE}.HiveMetaStore", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: accepts(port), within_s=WITHIN_S)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(WITHIN_S)


def make_tables_of_locks(classes: str, java: str, options: list[str]) -> None:
    """Which a metastore expects to be there."""
    port, process = launch_gateway(
        classpath=classes, javaopts=options, java_path=java, die_on_exit=True, return_proc=True
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    hive = gateway.jvm.org.apache.hadoop.hive
    hive.metastore.txn.TxnDbUtil.prepDb(hive.conf.HiveConf())
    gateway.shutdown()
    process.stdin.close()
    process.wait(WITHIN_S)
