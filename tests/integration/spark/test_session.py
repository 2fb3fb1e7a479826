"""What the settings of a driver's session do."""

from pathlib import Path

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

FILES = 50


def test_no_process_is_started_for_a_file_of_a_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert spark._jvm is not None
    java, conf = spark._jvm, spark._jsparkSession.sessionState().newHadoopConf()

    def faults_of_one_file(name: str) -> int:
        place = java.org.apache.hadoop.fs.Path(str(tmp_path / name))
        before = faults_of_children(java)
        place.getFileSystem(conf).create(place, True).close()
        return faults_of_children(java) - before

    # Spark also removes its folders by processes, whenever it likes: one quiet file is enough.
    quiet = next((n for n in range(FILES) if faults_of_one_file(str(n)) == 0), None)
    assert quiet is not None, f"each of {FILES} files started a process"
    assert (tmp_path / str(quiet)).is_file()


def faults_of_children(java: JavaObject) -> int:
    """Page faults of all processes that this Java has started and seen end; none has no fault."""
    pid = java.java.lang.ProcessHandle.current().pid()
    behind_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(behind_name[8])  # cminflt, as proc(5) counts it
