"""The Spark session and what is below it, the context: one way to build them, whatever the master."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from nfa import kernel_digest
from pipeline.cluster import ClusterOptions, cluster_settings, is_local, starting_on
from pipeline.errors import JavaMissing

_LEAST_JAVA = 17
_ROCKSDB_PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# The driver plans a small job some times a second. Compiling its code to the utmost keeps two cores busy for minutes
# and gains nothing that could be measured; a heap this small is collected fastest by one thread.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Hadoop starts a process, chmod, for each file that it makes. A micro-batch makes two in the checkpoint; a file of
# checksums beside each would double that, and Spark's own checksums once more.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """How Spark runs.

    Attributes:
        data_folder: Spark's scratch files, warehouse and log settings go below ``<data_folder>/spark``, compiled
            kernels to a folder in ``<data_folder>/numba`` unless ``NUMBA_CACHE_DIR`` is set.
        master: Spark master; ``local[*]`` runs in this machine's own processes, ``spark://HOST:PORT`` and others on a
            cluster.
        shares_kernels: Whether Spark's processes look for compiled kernels where this process does, beside the code,
            rather than below the data folder; local masters only.
        cluster: How driver and machines meet where the master is not local.
    """

    data_folder: Path
    master: str = "local[*]"
    shares_kernels: bool = False
    cluster: ClusterOptions = field(default_factory=ClusterOptions)


def build_session(options: SessionOptions) -> SparkSession:
    """The session of this process, started if there is none yet; as ``build_context`` otherwise.

    Raises:
        JavaMissing: No Java of version 17 or newer was found.
        ClusterUnready: The master does not answer.
    """
    build_context(options)
    return SparkSession.builder.getOrCreate()


def build_context(options: SessionOptions) -> SparkContext:
    """The Spark context of this process, started if there is none yet: all that jobs without frames need.

    Sets ``PYSPARK_PYTHON`` and ``PYSPARK_DRIVER_PYTHON`` in this process's environment, which is where Spark looks for
    the interpreter.

    Raises:
        JavaMissing: No Java of version 17 or newer was found.
        ClusterUnready: The master does not answer.
    """
    check_java()
    folder = (options.data_folder / "spark").resolve()
    for name in ("local", "warehouse"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = sys.executable if is_local(options.master) else options.cluster.interpreter
    settings = {"spark.app.name": "forestall", "spark.master": options.master} | _settings(options, folder)
    with _own_interrupts(), starting_on(options.master):
        return SparkContext.getOrCreate(SparkConf().setAll(list(settings.items())))


def end_session(session: SparkSession | SparkContext) -> None:
    """Stop Spark, if its Java process is still there."""
    with suppress(OSError, Py4JError):  # what it died of is the news, and is told by whoever waits for the query
        session.stop()


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Undo that Spark takes SIGINT for itself: who ends this process decides how."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def check_java() -> int:
    """Major version of the Java that Spark will start.

    Raises:
        JavaMissing: There is none, or it is older than 17; the message says how to get one.
    """
    # house: allow environment: Spark's own launcher looks for Java there first
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = (
        f"Spark needs Java {_LEAST_JAVA} or newer: install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless;"
        " macOS: brew install openjdk@17) and put java on PATH, or set JAVA_HOME"
    )
    if java is None:
        raise JavaMissing(f"no java on PATH and JAVA_HOME is not set. {advice}")
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaMissing(f"{java} does not start: {error}. {advice}", java=java) from error
    version = java_version(answer.stderr + answer.stdout)
    if version < _LEAST_JAVA:
        raise JavaMissing(f"{java} is Java {version or 'of an unknown version'}. {advice}", java=java, version=version)
    return version


def java_version(text: str) -> int:
    """Major version in what ``java -version`` prints; 0 where none is found."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return 0
    major = int(found.group(1))
    return int(found.group(2) or 0) if major == 1 else major


def _worker_environment(options: SessionOptions) -> dict[str, str]:
    """For Spark's Python processes: a shared kernel cache, and no imports from the folder that they run in."""
    # house: allow environment: numba's own variable, set by builds and by hand, wins
    cache = os.environ.get("NUMBA_CACHE_DIR", "")
    if not is_local(options.master):
        return {"NUMBA_CACHE_DIR": cache or str(options.cluster.kernels), "PYTHONSAFEPATH": "1"}
    if not cache and not options.shares_kernels:
        cache = str((options.data_folder / "numba" / kernel_digest()).resolve())
    if cache:
        Path(cache).mkdir(parents=True, exist_ok=True)
    return {"NUMBA_CACHE_DIR": cache, "PYTHONSAFEPATH": "1"}


def _settings(options: SessionOptions, folder: Path) -> dict[str, str]:
    log_settings = folder / "log4j2.properties"
    log_settings.write_text(_LOG_SETTINGS, encoding="utf-8")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f'{_JAVA_OPTIONS} -Dlog4j2.configurationFile="{log_settings.as_uri()}"',
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
        return settings | {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    return settings | cluster_settings(options.cluster, folder) | dict(options.cluster.settings)
