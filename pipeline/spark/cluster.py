"""Spark on a cluster: the packages sent to its machines, the required packages there, and the number of cores.

The project's own packages travel with the job, so that the machines run the driver's code. Third-party packages do not
travel, because they are compiled for a machine. They must be installed in the machine's Python.
"""

from __future__ import annotations

import re
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from pipeline.errors import ClusterUnready, QueryFailed
from pipeline.spark.packages import pack

NEEDED = tuple("defusedxml lark lazy-loader numba numpy orjson pyarrow pyspark pyyaml redis structlog".split())

_LOCAL = re.compile(r"local(\[[^]]*\])?")
_STANDALONE = "spark://"
_CONNECT_S = 5.0
_POLL_S = 0.1
_LOOKS_PER_CORE = 4  # Spark runs tasks wherever cores are free, so several per core reach every machine

Report = tuple[str, str, dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Options for driver and machines of a cluster. A local master ignores them.

    Attributes:
        python: Interpreter on every machine, the driver's included. If empty, the path of the current interpreter.
        driver_host: Name or address by which the machines reach the driver. If empty, Spark finds one.
        bind_address: Address on which the driver listens. If empty, the value of ``driver_host``.
        worker_folder: Folder on each machine for compiled kernels, and for states that one process hands over to the
        next.
        patience_s: Longest wait for the first machine.
        steady_s: If no new machine has arrived for this time, the wait for further machines ends.
    """

    python: str = ""
    driver_host: str = ""
    bind_address: str = ""
    worker_folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "forestall")
    patience_s: float = 120.0
    steady_s: float = 2.0

    @property
    def interpreter(self) -> str:
        """The Python interpreter that Spark starts."""
        return self.python or sys.executable

    def handover(self, log_identity: str) -> Path:
        """Return the folder on each machine through which processes hand over the states of one log."""
        return self.worker_folder / "handover" / log_identity


def is_local(master: str) -> bool:
    """Check whether Spark runs only in child processes on this machine."""
    return _LOCAL.fullmatch(master) is not None


def cluster_settings(options: ClusterOptions, folder: Path) -> dict[str, str]:
    """Return Spark's settings for a cluster. The archive of packages is in ``folder`` on the driver."""
    archive = pack(folder)
    environment = {
        "PYTHONPATH": archive.stem,  # Spark unpacks archives below an executor's working folder
        "PYTHONDONTWRITEBYTECODE": "",  # many workers import the packages
    }
    settings = {
        "spark.archives": f"{archive.resolve().as_uri()}#{archive.stem}",
        **{f"spark.executorEnv.{name}": value for name, value in environment.items()},
    }
    if options.driver_host:
        settings["spark.driver.host"] = options.driver_host
    if options.bind_address:
        settings["spark.driver.bindAddress"] = options.bind_address
    return settings


def require_master(master: str) -> None:
    """Check that a standalone master can be reached, because Spark would try for a minute.

    Other masters are not checked. Raise ``ClusterUnready`` if no address of ``spark://HOST:PORT,HOST:PORT`` accepts a
    connection.
    """
    if not master.startswith(_STANDALONE):
        return
    refusals: list[str] = []
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
        except (OSError, ValueError, OverflowError) as error:
            refusals.append(f"{address}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise ClusterUnready(
        f"no Spark master at {master} ({'; '.join(refusals)}); start one there, or correct FORESTALL_SPARK_MASTER",
        master=master,
    )


@contextmanager
def starting_on(master: str) -> Iterator[None]:
    """Raise ``ClusterUnready`` if a session is started in the block, but the master does not answer.

    Raise ``QueryFailed`` if Spark does not start, for example because its Java process ends for lack of memory.
    """
    try:
        yield
    except (Py4JError, PySparkRuntimeError, OSError) as error:
        if isinstance(error, Py4JError) and not is_local(master):
            raise _no_answer_from(master) from error
        raise QueryFailed(f"Spark did not start: {error}") from error


def await_machines(context: SparkContext, options: ClusterOptions) -> int:
    """Wait for the machines of a cluster, and check their Python packages. Return the number of cores.

    A local master has nothing to wait for. Raise ``ClusterUnready``, with the details, if no machine registered or a
    machine lacks a package.
    """
    master = context.master or ""
    if is_local(master):
        return context.defaultParallelism
    started, steady_since, executors = time.monotonic(), time.monotonic(), 0
    while not executors or time.monotonic() - steady_since < options.steady_s:
        count = len(_executors(context))
        if count != executors:
            executors, steady_since = count, time.monotonic()
        if not executors and time.monotonic() - started > options.patience_s:
            raise ClusterUnready(
                f"no executor of {master} started within {options.patience_s:g} s: no worker is running, none has "
                f"the requested cores and memory, or they cannot reach the driver (FORESTALL_SPARK__DRIVER_HOST); "
                "the master's page lists workers and applications",
                master=master,
            )
        time.sleep(_POLL_S)
    _check_python(context)
    return context.defaultParallelism


class ExecutorWatch:
    """Watches the executors of a cluster, and notices machines that have lost executors."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._most: Counter[str] = Counter()  # the most executors at one time, by machine

    def look(self) -> tuple[int, list[str]]:
        """Return the number of executors, and for each missing executor its machine."""
        now = Counter(_executors(self._context))
        self._most |= now
        return now.total(), sorted((self._most - now).elements())


def _executors(context: SparkContext) -> list[str]:
    try:
        java = context._jsc.sc()  # Spark's Python interface has no such call
        places = str(java.getExecutorMemoryStatus().keySet().mkString(" ")).split()
        driver = str(java.conf().get("spark.driver.host"))
    except (Py4JError, OSError) as error:
        raise _no_answer_from(context.master or "") from error
    hosts = [place.rpartition(":")[0] for place in places]
    if driver in hosts:  # the list includes the driver
        hosts.remove(driver)
    return hosts


def _no_answer_from(master: str) -> ClusterUnready:
    return ClusterUnready(
        f"{master} does not answer, or does not take the application, and Spark gave up: is the master there, is its "
        "name written as it names itself, and does it know the settings of FORESTALL_SPARK__CONF?",
        master=master,
    )


def _check_python(context: SparkContext) -> None:
    needed = {name: version(name) for name in NEEDED}

    def look(_: Iterable[int]) -> Iterator[Report]:
        # Sent by value and with its own imports, because machines may lack this project.
        import socket  # noqa: PLC0415
        import sys  # noqa: PLC0415
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        versions: dict[str, str] = {}
        for name in needed:
            try:
                versions[name] = version(name)
            except PackageNotFoundError:
                versions[name] = ""
        yield socket.gethostname(), sys.executable, versions

    tasks = _LOOKS_PER_CORE * context.defaultParallelism
    reports = context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    if faults := faults_of(reports, needed):
        raise ClusterUnready(
            "the cluster's machines lack what the driver has:\n  " + "\n  ".join(faults), faults=list(faults)
        )


def faults_of(reports: Iterable[Report], needed: Mapping[str, str]) -> list[str]:
    """Return sentences about machines whose packages are missing, or differ from the driver's (``needed``).

    A report has a machine's host name, its interpreter, and the version of each package (empty: not installed). Major
    versions must be equal. For Spark, the minor versions must be equal too.
    """
    faults: set[str] = set()
    for host, python, versions in reports:
        for name, required in needed.items():
            parts = 2 if name == "pyspark" else 1
            installed = versions[name]
            if not installed:
                if name != "pyspark":  # Spark itself may bring this package
                    faults.add(f"{host}: {python} has no package {name}; install {name}=={required}")
            elif installed.split(".")[:parts] != required.split(".")[:parts]:
                faults.add(
                    f"{host}: {python} has {name} {installed}, and the driver {required}; install {name}=={required}"
                )
    return sorted(faults)
