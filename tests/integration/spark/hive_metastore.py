"""A Hive metastore on loopback: that of the jars which come with PySpark, with tables in Derby."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError

from integration.waiting import eventually
from waybill_local.java import find_java
from waybill_local.ports import accepts, pick

JARS: Final = Path(pyspark.__file__).parent / "jars"
WITHIN_S: Final = 120.0
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
    gateway_port, process = launch_gateway(
        classpath=f"{folder}:{JARS}/*",
        javaopts=[*OPENED, f"-Dderby.stream.error.file={folder}/derby.log"],
        java_path=str(find_java().path),
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=gateway_port))
    port = pick({"hive": 0})["hive"]
    serving = threading.Thread(target=_serve, args=(gateway, port))
    try:
        _make_tables_of_locks(gateway)
        serving.start()
        eventually(lambda: accepts(port))
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(WITHIN_S)
        process.stdin.close()
        serving.join(WITHIN_S)
        gateway.close()


def _make_tables_of_locks(gateway: JavaGateway) -> None:
    """Which a metastore expects to be there."""
    hive = gateway.jvm.org.apache.hadoop.hive
    hive.metastore.txn.TxnDbUtil.prepDb(hive.conf.HiveConf())


def _serve(gateway: JavaGateway, port: int) -> None:
    """Until the process is killed."""
    words = gateway.new_array(gateway.jvm.java.lang.String, 2)
    words[0], words[1] = "-p", str(port)
    with suppress(Py4JError):
        gateway.jvm.org.apache.hadoop.hive.metastore.HiveMetaStore.main(words)
