"""The Spark session and the Spark context, built in the same way for every master."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from pipeline.spark.cluster import ClusterOptions, cluster_settings, is_local, require_master, starting_on
from pipeline.spark.java import archive_options, find_java
from pipeline.spark.prepared import LISTENING, PLACE
from pipeline.spark.workers import TASK_ENVIRONMENT

_ROCKSDB_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# The driver plans a small job several times a second. Full optimisation of its code keeps two cores busy for minutes
# without a measurable gain. A single thread collects the garbage of such a small heap fastest.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Hadoop starts a process, chmod, for each file that it creates. A micro-batch creates two in the checkpoint; Hadoop's
# checksum file beside each would double that, and Spark's own checksums would add as many again.
_FEW_FILES = {
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
_LOG_SETTINGS = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %p %c{1}: %m%n%ex
"""

_ENDED_S = 10.0
_LOCAL_THREADS = re.compile(r"local(?:\[(\d+|\*)\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Options of a Spark session.

    Attributes:
        data_folder: Spark's scratch files, warehouse and log settings are below ``<data_folder>/spark``.
        master: Spark master: ``local[*]`` for processes of this machine, or a cluster, such as ``spark://HOST:PORT``.
        writes_archive: Whether Spark's Java process may take some seconds at its end to write its archive of classes.
        settings: More settings of Spark, such as ``spark.driver.memory``. They override all others.
        task_attempts: Attempts at a task before the job fails, for example because its Python process was killed. 1
        means Spark's own setting on a cluster. If ``master`` names attempts, they take precedence.
    """

    data_folder: Path
    master: str = "local[*]"
    writes_archive: bool = False
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    settings: Mapping[str, str] = field(default_factory=dict)
    task_attempts: int = 1


def build_session(options: SessionOptions) -> SparkSession:
    """Return the session of this process. It is started at the first call, with ``build_context``."""
    build_context(options)
    with starting_on(options.master):
        return SparkSession.builder.getOrCreate()


def build_context(options: SessionOptions) -> SparkContext:
    """Return the Spark context of this process. It is started at the first call.

    Jobs without frames need nothing else.
    """
    _, java = find_java()
    _clear()
    folder = (options.data_folder / "spark").resolve()
    for name in ("local", "warehouse"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = sys.executable if is_local(options.master) else options.cluster.interpreter
    settings = {"spark.app.name": "forestall", "spark.master": _master_of(options)} | _settings(options, folder, java)
    require_master(options.master)
    with _own_interrupts(), starting_on(options.master):
        return SparkContext.getOrCreate(SparkConf().setAll(list(settings.items())))


@contextmanager
def prepared_daemon(options: SessionOptions) -> Iterator[SessionOptions]:
    """Start a Python daemon for continuous tasks before Spark asks for one, while Java starts.

    The block receives options, with which it must start Java. The daemon ends with the block, or with this process.
    """
    with TemporaryDirectory(prefix="forestall-", ignore_cleanup_errors=True) as folder:
        place = str(Path(folder) / "daemon")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place)
            listening.listen()
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pipeline.spark.daemon", f"{LISTENING}{listening.fileno()}"],
                stdin=subprocess.PIPE,
                pass_fds=[listening.fileno()],
                process_group=0,
                # house: allow environment: Spark passes the environment of this process on, too
                env=os.environ | _worker_environment(options) | TASK_ENVIRONMENT,
            )
        try:
            yield replace(options, settings={f"spark.executorEnv.{PLACE}": place} | dict(options.settings))
        finally:
            try:
                process.communicate(timeout=_ENDED_S)  # the daemon ends when its input or Java's input ends
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def end_session(session: SparkSession | SparkContext) -> None:
    """Stop Spark's session or context, if its Java process still exists."""
    with suppress(OSError, Py4JError):  # the code that waits for the query reports why Java died
        session.stop()


def end_with_process(context: SparkContext) -> None:
    """Stop Spark's Java side only, which saves a wait. The Python side ends with this process or the next context."""
    with suppress(OSError, Py4JError):
        context._jsc.stop()  # the only way to skip the wait


def _clear() -> None:
    """Stop the Python side of a context whose Java side ``end_with_process`` has stopped."""
    context = SparkContext._active_spark_context
    if context is not None and context._jsc.sc().isStopped():
        context.stop()


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep this process's SIGINT handler, which Spark would replace."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _master_of(options: SessionOptions) -> str:
    """Return Spark's master. For a local master, it contains the attempts at a task, as Spark reads them only there."""
    threads = _LOCAL_THREADS.fullmatch(options.master)
    return options.master if threads is None else f"local[{threads[1] or 1},{options.task_attempts}]"


def _worker_environment(options: SessionOptions) -> dict[str, str]:
    # house: allow environment: numba's own variable, set by builds and by hand, wins
    kernel_folder = os.environ.get("NUMBA_CACHE_DIR", "")
    if not kernel_folder and not is_local(options.master):
        kernel_folder = str(options.cluster.worker_folder)  # executors of a cluster may lack a home folder
    return {"NUMBA_CACHE_DIR": kernel_folder, "PYTHONSAFEPATH": "1"}


def _settings(options: SessionOptions, folder: Path, java: str) -> dict[str, str]:
    log_settings = folder / "log4j2.properties"
    log_settings.write_text(_LOG_SETTINGS, encoding="utf-8")
    java_options = [
        _JAVA_OPTIONS,
        f'-Dlog4j2.configurationFile="{log_settings.as_uri()}"',
        archive_options(java, writes=options.writes_archive),
    ]
    settings = {
        "spark.driver.memory": "1g",
        # Spark would set its default only for workers of frames, which would then be separate workers.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB_PROVIDER,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.noDataProgressEventInterval": "1000",
        "spark.sql.streaming.metricsEnabled": "false",
    } | _FEW_FILES
    settings |= {f"spark.executorEnv.{name}": value for name, value in _worker_environment(options).items()}
    if is_local(options.master):
        here = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        settings |= here | {"spark.python.daemon.module": "pipeline.spark.daemon"}
    else:
        settings |= cluster_settings(options.cluster, folder)
        if options.task_attempts > 1:
            settings["spark.task.maxFailures"] = str(options.task_attempts)
    return settings | dict(options.settings)
