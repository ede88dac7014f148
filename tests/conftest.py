"""What holds for the whole suite."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from structlog.stdlib import ProcessorFormatter

from house import called_kernels, surplus_signatures
from house.examples import Draws, share_examples
from house.session import Bound, Heartbeat, line_writer, release_memory, slow_files_first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.spark.session import SessionOptions

SURPLUS = pytest.StashKey[set[str]]()
GARBAGE = 10_000, 20, 20  # how many objects are made before garbage is looked for, and how often the older is spared
gc.disable()  # nothing of what is imported and collected is garbage: looking for some takes a third of that time


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much is drawn at random, and how long it may take."""
    parser.addoption("--openapi-examples", type=int, default=2, help="examples at random per operation of the API")
    parser.addoption("--examples-share", type=float, default=0.1, help="share of the examples of each property test")
    parser.addoption("--pictures", action="store_true", help="make the pictures of docs/console.md again")
    parser.addoption("--bound", type=float, help="interrupt the tests after so many seconds")


def pytest_configure(config: pytest.Config) -> None:
    """The same examples in each run, unless a seed is given; long tests are named while they run."""
    settings.register_profile(
        "forestall",
        derandomize=config.getoption("--hypothesis-seed") is None,
        database=None,
        print_blob=True,
        deadline=None,  # the first use of a kernel compiles it, so an example may take seconds
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("forestall")
    settings.register_profile(
        "openapi",
        max_examples=config.getoption("--openapi-examples"),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    config.stash[SURPLUS] = set()
    is_shared_out = config.getoption("numprocesses", None)
    if not is_worker(config) and config.get_verbosity() >= 0:
        config.pluginmanager.register(Heartbeat(line_writer()))
    if (bound := config.getoption("--bound")) and not is_shared_out:
        config.pluginmanager.register(Bound(bound))


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs a part of the tests for another one."""
    return hasattr(config, "workerinput")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Passes that repeat others draw fewer examples; where cores share the tests, what takes long begins first."""
    share_examples((getattr(item, "obj", None) for item in items), config.getoption("--examples-share"))
    if is_worker(config):
        slow_files_first(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collecting tests compiles nothing, neither for a module nor for its parameters; and each test has its own id."""
    counts = Counter(item.nodeid for item in session.items)
    if doubled := [nodeid for nodeid, count in counts.items() if count > 1]:
        raise pytest.UsageError(f"several tests have one id, and workers would run one of them: {', '.join(doubled)}")
    if called := called_kernels():
        raise pytest.UsageError(
            "collecting the tests called kernels, which may have to be compiled; "
            f"move the calls into tests or fixtures: {', '.join(called)}"
        )
    gc.freeze()  # garbage is looked for among what the tests make; all that was there before would take longer
    gc.set_threshold(*GARBAGE)
    gc.enable()


@pytest.fixture(scope="session")
def draws(pytestconfig: pytest.Config) -> Draws:
    """The share of the cases that a test draws in a loop of its own."""
    return Draws(pytestconfig.getoption("--examples-share"))


@pytest.fixture(scope="session")
def kernels(pytestconfig: pytest.Config) -> str:
    """The folder of compiled kernels for all processes that tests start, wherever the sources lie."""
    return os.environ.get("NUMBA_CACHE_DIR") or str(pytestconfig.cache.mkdir("numba"))


@pytest.fixture(scope="session")
def commands() -> Iterator[Path]:
    """The folder of programs for commands and Python code that are forked from a process with all imports."""
    from tests.builders.commands import running_commands  # noqa: PLC0415 - few tests need it

    with running_commands() as programs:
        yield programs


@pytest.fixture(scope="session")
def spark_options(tmp_path_factory: pytest.TempPathFactory, kernels: str) -> Iterator[SessionOptions]:
    """The options of the tests' own Spark."""
    from pipeline.spark.session import SessionOptions  # noqa: PLC0415 - takes long

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", kernels)
        patch.setenv("PYSPARK_PYTHON", "")
        patch.setenv("PYSPARK_DRIVER_PYTHON", "")
        yield SessionOptions(data_folder=tmp_path_factory.mktemp("spark"), master="local[2]")


@pytest.fixture
def spark(spark_options: SessionOptions) -> SparkSession:
    """A real Spark, the same for all tests of a process, or another where a command under test has ended that one."""
    from pipeline.spark.session import build_session  # noqa: PLC0415 - takes long

    return build_session(spark_options)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Remove the log handlers of a test; after the last test of a file, engines and services give their memory back.

    Whatever is left (kernels, caches, tests) is examined no more: over hundreds of files that took a tenth of the time.
    """
    root = logging.getLogger()  # commands that a test calls leave a handler, whose stream ends with the test
    root.handlers[:] = [one for one in root.handlers if not isinstance(one.formatter, ProcessorFormatter)]
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
        release_memory()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Where files are shared out, those with the tests' own Spark go to one process."""
    if config.getoption("dist") != "loadfile":
        return None
    from house.sharing import FilesTogether  # noqa: PLC0415 - only the process that shares out needs it

    return FilesTogether(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node) -> None:
    """Take over what a worker has found."""
    node.config.stash[SURPLUS].update(getattr(node, "workeroutput", {}).get("surplus", ()))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """One kernel, one compiled signature, whatever the tests passed in."""
    found = session.config.stash[SURPLUS]
    found.update(surplus_signatures())
    if is_worker(session.config):
        vars(session.config)["workeroutput"]["surplus"] = sorted(found)
    elif exitstatus == pytest.ExitCode.OK and found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    """Commands that tests have called in this process do not decide its status."""
    if (starting := sys.modules.get("service.cli.starting")) is not None:
        starting._QuickEnd.__call__ = lambda _: None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the kernels that fail the session."""
    if found := terminalreporter.config.stash[SURPLUS]:
        terminalreporter.section("kernels with more than one compiled signature", red=True)
        for line in sorted(found):
            terminalreporter.line(line)
