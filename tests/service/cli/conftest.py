"""Calls of ``forestall`` in this process, and files for them."""

from __future__ import annotations

import gzip
import logging
import sys

import orjson
import pytest
import structlog

from api import create_app
from service.cli import main
from service.cli.calling import Caller
from service.client import Client
from tests.builders.api import serving
from tests.builders.service import settings_for

EVENTS = [
    {"id": "e1", "type": "Quote", "time": "2026-01-01T00:00:00Z", "key": "t1", "data": {"price": 300, "customer": "x"}},
    {"id": "e2", "type": "Quote", "time": 1767225601000000, "key": "t2", "data": {"price": 100, "customer": "x"}},
    {"id": "e3", "type": "Cancel", "time": "2026-01-01T00:00:02Z", "key": "t1", "data": {"customer": "x"}},
    {"id": "e4", "type": "Ship", "time": "2026-01-01T00:00:02Z", "key": "t2", "data": {"customer": "x"}},
    {"id": "e5", "type": "Cancel", "time": "2026-01-01T00:00:03Z", "key": "t2", "data": {"customer": "x"}},
]
PATTERN = "PATTERN expensive EVENT SEQ(Quote q [price > 200], Cancel c)"
ANY = "PATTERN any_cancelled EVENT SEQ(Quote q, Cancel c)"


@pytest.fixture(autouse=True)
def logs_as_before():
    """Takes back what a command says about logs, which would go to the standard error of its test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def api_url(server_url):
    """An API for all tests that need no settings of their own; each begins with an empty store."""
    with serving(create_app(settings_for(server_url))) as url:
        yield url


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Runs ``forestall`` with arguments in an empty folder; returns (status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["forestall", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        status = ended.value.code
        return status if isinstance(status, int) else int(bool(status)), said.out, said.err

    return run


@pytest.fixture
def impatient(monkeypatch):
    """Commands give up a service that does not answer after a fifth of a second."""

    def begin(self, *arguments, patience_s, **options):
        Client.__init__(self, *arguments, patience_s=min(patience_s, 0.2), **options)

    monkeypatch.setattr(Caller, "__init__", begin)


@pytest.fixture
def files(tmp_path):
    lines = b"".join(orjson.dumps(event) + b"\n" for event in EVENTS)
    (tmp_path / "events.jsonl").write_bytes(lines)
    (tmp_path / "events.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "expensive.pattern").write_text(PATTERN)
    (tmp_path / "any.pattern").write_text(ANY)
    (tmp_path / "rules.yaml").write_text("- not succession: [Ship, Cancel]\n")
    return tmp_path
