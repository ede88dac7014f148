"""What holds for the whole suite."""

import pytest
from hypothesis import HealthCheck, settings

from house import called_kernels, surplus_signatures

# The first use of a kernel compiles it, so an example may take seconds.
settings.register_profile("forestall", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("forestall")


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long the API is fuzzed: see tests/api/test_openapi.py."""
    parser.addoption("--openapi-examples", type=int, default=25, help="examples at random per operation of the API")


def pytest_configure(config: pytest.Config) -> None:
    """The same examples in each run."""
    settings.register_profile(
        "openapi",
        max_examples=config.getoption("--openapi-examples"),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collecting tests compiles nothing: no module matches events when it is imported, or for its parameters."""
    if called := called_kernels():
        raise pytest.UsageError(
            "collecting the tests called kernels, which may have to be compiled; "
            f"move the calls into tests or fixtures: {', '.join(called)}"
        )


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """One kernel, one compiled signature, whatever the tests passed in."""
    if exitstatus == pytest.ExitCode.OK and surplus_signatures():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the kernels that fail the session."""
    if found := surplus_signatures():
        terminalreporter.section("kernels with more than one compiled signature", red=True)
        for line in found:
            terminalreporter.line(line)
