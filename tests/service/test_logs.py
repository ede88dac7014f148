import io
import logging

import orjson
import pytest
import structlog

from service.observing.logs import configure_logs


@pytest.fixture
def lines():
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    out = io.StringIO()
    configure_logs("INFO", out)
    yield lambda: [orjson.loads(line) for line in out.getvalue().splitlines()]
    root.handlers[:], level = before
    root.setLevel(level)
    structlog.reset_defaults()


def test_both_kinds_of_logger_write_one_object_per_line(lines):
    structlog.get_logger("service.x").info("delivery-settled", alert="a1")
    logging.getLogger("nfa.y").warning("slow %s", "kernel", extra={"rows": 3})
    first, second = lines()
    assert (first["event"], first["alert"], first["level"], first["logger"]) == (
        "delivery-settled",
        "a1",
        "info",
        "service.x",
    )
    assert (second["event"], second["rows"], second["level"]) == ("slow kernel", 3, "warning")
    assert first["timestamp"].endswith("Z")


def test_context_travels_with_every_line(lines):
    with structlog.contextvars.bound_contextvars(pattern="p"):
        structlog.get_logger("service.x").info("one")
    assert lines()[0]["pattern"] == "p"


def test_less_than_the_level_is_silent(lines):
    structlog.get_logger("service.x").debug("nothing")
    logging.getLogger("httpx").info("POST http://somewhere")
    assert lines() == []


def test_an_exception_is_part_of_the_object(lines):
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("x").exception("it-failed")
    assert "ValueError: broken" in lines()[0]["exception"]
