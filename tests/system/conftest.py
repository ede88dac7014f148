"""A running service, shared by the tests of this folder: they kill no part of it, or restore its readiness."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.processes.temporary import TemporaryService, running
from tests.builders.service import HandReceiver, receiving


@pytest.fixture(scope="session")
def collector() -> Iterator[HandReceiver]:
    """Where the service sends its spans."""
    with receiving() as collector:
        yield collector


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, collector: HandReceiver) -> Iterator[TemporaryService]:
    """A service whose streams are named for one test each; a request is traced where its header asks for a trace."""
    traced = {"TRACING__ENDPOINT": collector.site, "TRACING__SAMPLE_RATIO": "0"}
    with running(tmp_path_factory.mktemp("service"), more=traced) as started:
        yield started
