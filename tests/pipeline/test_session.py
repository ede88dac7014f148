import re
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from pipeline.errors import JavaMissing
from pipeline.spark.java import archive_options, check_java, java_version
from pipeline.spark.workers import matcher_workers

AT_START = signal.getsignal(signal.SIGINT)  # modules are imported before Spark starts


def fake_java(folder, script):
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "22-ea" 2024', 22),
        ("no such thing", 0),
    ],
)
def test_versions_are_read_from_what_java_prints(text, version):
    assert java_version(text) == version


def test_a_java_that_will_do_is_found(monkeypatch, tmp_path):
    fake_java(tmp_path, "echo 'openjdk version \"21.0.1\" 2023' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java() == 21


def test_no_java_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match=r"no java on PATH.*Java 17 or newer.*apt-get install"):
        check_java()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'java version \"1.8.0_392\"' >&2", "is Java 8"),
        ("echo nonsense", "unknown version"),
        ("exit 1", "does not start"),
    ],
)
def test_a_java_that_will_not_do_is_named(monkeypatch, tmp_path, script, message):
    fake_java(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match=f"{tmp_path}/bin/java.*{message}"):
        check_java()


def test_a_java_home_without_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="does not start"):
        check_java()


@pytest.mark.spark
def test_spark_runs_this_interpreter_in_utc_with_states_in_rocksdb(spark):
    assert spark.sparkContext.pythonExec == sys.executable
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert "RocksDB" in spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    assert spark.conf.get("spark.ui.enabled") == "false"


@pytest.mark.spark
def test_workers_that_match_have_the_pipeline_when_they_begin_and_others_only_the_source(spark, monkeypatch):
    # With a variable of their own, Spark begins new workers: those of an earlier test have what it imported.
    monkeypatch.setitem(spark.sparkContext.environment, "TEST_WORKERS", "new")

    def imported(_):
        import sys  # noqa: PLC0415  # sent by value, so that nothing is imported for it

        looked_for = ("pipeline.runs.in_spark", "pipeline.job", "pipeline.warmup", "shards.place")
        yield [name in sys.modules for name in (*looked_for, "pipeline.sources.log_reader")]

    def seen():
        return spark.sparkContext.parallelize([0], 1).mapPartitions(imported).collect()

    assert seen() == [[False, False, False, False, True]]
    with matcher_workers(spark.sparkContext):
        assert seen() == [[True] * 5]


@pytest.mark.spark
def test_workers_of_continuous_tasks_have_the_kernels_when_they_begin(spark):
    def loaded(_):
        from pipeline.warmup import load_kernels  # noqa: PLC0415  # sent by value

        yield load_kernels.cache_info().currsize

    with matcher_workers(spark.sparkContext, are_tasks=True):
        assert spark.sparkContext.parallelize([0], 1).mapPartitions(loaded).collect() == [1]


@pytest.mark.spark
def test_interrupts_stay_with_the_program(spark):
    assert signal.getsignal(signal.SIGINT) is AT_START


@pytest.fixture
def archives(monkeypatch, tmp_path):
    """The folder of archives, and a function that gives Java's options for an archive."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    folder = tmp_path / "kept" / "java"
    return folder, partial(archive_options, "17")


def test_an_archive_of_classes_is_written_once_and_then_used(archives):
    folder, options = archives
    assert options(writes=False) == ""
    found = re.fullmatch(r'.* -XX:ArchiveClassesAtExit="(.*)"', options(writes=True))
    assert found is not None
    archive = Path(found[1])
    assert archive.parent == folder
    archive.write_bytes(b"\0\0\0\0rest")  # its header comes last
    assert "ArchiveClassesAtExit" in options(writes=True)
    assert options(writes=False) == ""
    archive.write_bytes(b"\xa8\xab\x0b\xf0rest")
    for writes in (True, False):
        assert options(writes=writes).endswith(f'-XX:SharedArchiveFile="{archive}"')


def test_a_machine_that_knows_no_such_archives_is_spared(archives):
    assert archive_options("Eclipse OpenJ9 VM", writes=True) == ""


def test_archives_that_others_can_write_are_left_alone(archives):
    folder, options = archives
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert options(writes=True) == ""


def test_what_cannot_be_written_is_done_without(archives, tmp_path):
    _, options = archives
    (tmp_path / "kept").write_text("a file")
    assert options(writes=True) == ""
