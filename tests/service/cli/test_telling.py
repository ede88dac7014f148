"""What long commands tell meanwhile, for people and for programs."""

import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import orjson
import pytest

from service.cli.feed import _Teller
from service.cli.output import telling
from service.cli.serve import _Announcer, _tell_death
from service.cli.waiting import Waiting
from service.client import Client
from service.intake.feeds import FeedProgress
from service.processes.supervisor import Death
from tests.builders.service import answering

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@contextmanager
def ready_service():
    """Something at a URL that answers whatever it is asked with 200."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

    with answering(Handler) as url:
        yield url


@pytest.mark.parametrize("is_json", [False, True])
def test_what_happens_to_a_service_is_told(capsys, tmp_path, is_json):
    tell = telling(is_json=is_json)
    log_file = tmp_path / "pipeline.log"
    log_file.write_text("the last line\n")
    said_to_wait: list[str] = []
    with ready_service() as url, Client(url) as client:
        announcer = _Announcer("http://h:1", client, tell, Waiting(said_to_wait.append, 0.0), "http://h:2")
        for _ in range(2):
            announcer.look()
    assert said_to_wait == []
    _tell_death(tell, lambda: None, Death(name="pipeline", status=-9, pause_s=2.0, log_file=log_file))
    said = capsys.readouterr()
    if not is_json:
        assert said.out == ""
        assert said.err.startswith("ready: http://h:1/v1")
        assert "console at http://h:2;" in said.err
        assert "pipeline" in said.err
        return
    ready, died = map(orjson.loads, said.out.splitlines())
    assert MOMENT.match(ready.pop("at"))
    assert ready == {"event": "ready", "url": "http://h:1/v1", "console": "http://h:2"}
    assert (died["event"], died["name"], died["status"], died["restart_in_s"]) == ("process-died", "pipeline", -9, 2.0)
    assert said.err == ""


def test_what_a_feed_has_done_is_told(capsys):
    progress = FeedProgress(accepted=5, rejected=1, waiting="the log is full")
    _Teller("night", progress, telling(is_json=True)).tell("waits")
    found = orjson.loads(capsys.readouterr().out)
    assert MOMENT.match(found.pop("at"))
    assert found == {
        "event": "waits", "feed": "night", "accepted": 5, "rejected": 1, "duplicates": 0, "repeated": 0,
        "waiting": "the log is full",
    }  # fmt: skip
    _Teller("night", progress, telling(is_json=False)).tell("ended")
    assert capsys.readouterr().err == "feed night ended: 5 events appended, 1 dead letter\n"


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (1, "1 event had the id of an earlier event and was dropped"),
        (2_000, "2,000 events had the id of an earlier event and were dropped"),
    ],
)
def test_dropped_events_of_a_feed_are_printed(capsys, monkeypatch, count, sentence):
    monkeypatch.setattr("service.cli.feed._SHOWN_EVERY_S", 0.0)
    teller = _Teller("night", FeedProgress(duplicates=count), telling(is_json=False))
    teller.look()
    teller.look()
    assert capsys.readouterr().err == f"feed night runs: 0 events appended, 0 dead letters; {sentence}\n"
