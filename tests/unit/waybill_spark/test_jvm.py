"""What is said of a Java that cannot run Spark."""

from pathlib import Path

import pytest

from waybill_spark.driver.jvm.launch import JvmFailed, JvmOptions, start_jvm

CONF = {"spark.driver.host": "127.0.0.1"}


def options(java: Path) -> JvmOptions:
    folder = java.parent
    return JvmOptions(
        java=java, jars=folder, archives=folder, scratch=folder, heap="1g", log4j=folder / "log4j"
    )


def test_java_that_is_not_there_is_named_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(JvmFailed, match=r"/java \(WAYBILL_STAGE_RUNNER_JAVA\) .*No such file"):
        start_jvm(options(tmp_path / "java"), CONF)


def test_java_that_ends_at_once_is_named_with_what_it_must_be(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    with pytest.raises(JvmFailed, match=r"/java ended with exit code 1 .*Java 17 or newer"):
        start_jvm(options(java), CONF)


def test_spark_is_told_where_it_runs_because_not_every_host_knows_its_own_name(
    tmp_path: Path,
) -> None:
    java, told = tmp_path / "java", tmp_path / "told"
    java.write_text(f'#!/bin/sh\necho "$SPARK_LOCAL_HOSTNAME" > {told}\nexit 1\n')
    java.chmod(0o755)
    with pytest.raises(JvmFailed):
        start_jvm(options(java), CONF)
    assert told.read_text() == "127.0.0.1\n"
