"""``forestall streams`` and ``forestall events`` against the real API."""

import io

import orjson
import pytest

from api import create_app
from service.client import Client
from service.sending import send_events
from streams import Event
from tests.builders.api import serving
from tests.builders.service import HandClock, empty_client, private_server, settings_for

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def server_url(tmp_path_factory):
    with private_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def service(server_url):
    with (
        empty_client(server_url),
        serving(create_app(settings_for(server_url), HandClock())) as url,
        Client(url) as client,
    ):
        client.post("/streams", {"name": "s", "key": "subject"})
        yield client


@pytest.fixture
def at(service):
    return ("--url", service.url)


def send(service, *numbers):
    events = [Event(id=f"e{number}", type="A", time_us=number * 1_000_000, key="k", data={}) for number in numbers]
    send_events(service, "s", events, f"batch {numbers}")


def test_a_stream_is_changed(call, service, at):
    status, out, _ = call(
        "streams",
        "change",
        "s",
        "--lateness",
        "5",
        "--late",
        "drop",
        "--end",
        "Z",
        "--idle-timeout",
        "9 s",
        *at,
        "--json",
    )
    found = orjson.loads(out)
    assert (status, found["lateness"]["seconds"], found["late"], found["end_events"]) == (0, 5, "drop", ["Z"])
    call("streams", "change", "s", "--lateness", "none", "--late", "dead_letter", "--end", "none", *at)
    found = service.get("/streams/s")
    assert (found["lateness"], found["end_events"], found["idle_timeout_s"]) == (None, [], 9)
    status, _, err = call("streams", "change", "s", *at)
    assert (status, "say what to change, such as --lateness '5 min'" in err) == (2, True)
    status, _, err = call("streams", "change", "s", "--lateness", "soon", *at)
    assert status == 2
    assert "write 5 min, seconds, none, or auto" in err


def test_a_misspelt_end_event_of_a_stream_is_warned_of(call, service, at):
    send_events(service, "s", [Event(id="f", type="FinishOrder", time_us=1, key="k", data={})], "batch")
    status, out, err = call("streams", "change", "s", "--end", "FinshOrder", *at)
    assert (status, out.strip()) == (0, "the stream s is changed")
    assert err.startswith("warning: the end event FinshOrder (did you mean FinishOrder?) is none of the event types")
    _, _, err = call("streams", "change", "s", "--end", "FinishOrder", *at)
    assert not err


def test_a_lateness_may_be_measured(call, service, at):
    status, _, _ = call("streams", "change", "s", "--lateness", "auto:at_most=10min,start=5", *at)
    assert (status, service.get("/streams/s")["lateness"]["at_most_s"]) == (0, 600)
    _, out, _ = call("streams", "list", *at)
    assert out.splitlines()[1].split() == ["s", "subject", "-", "auto"]
    _, out, _ = call("streams", "show", "s", *at)
    assert "measured lateness:\n  bound s: 5.0\n" in out
    assert call("streams", "add", "t", "--lateness", "auto", *at)[0] == 0
    assert service.get("/streams/t")["lateness"]["mode"] == "auto"
    status, _, err = call("streams", "add", "u", "--lateness", "auto:at_most=soon", *at)
    assert (status, "at_most of auto is 'soon'; write 5 min, or seconds" in err) == (2, True)
    status, _, err = call("streams", "add", "u", "--lateness", "auto:most=5", *at)
    assert (status, "most" in err) == (2, True)
    assert call("streams", "add", "u", "--lateness", "2.5", *at)[0] == 0
    _, out, _ = call("streams", "show", "u", *at)
    assert ("lateness:\n  mode: fixed\n  seconds: 2.5\n" in out, "measured" in out) == (True, False)


@pytest.fixture
def answer(monkeypatch):
    """Says what is typed when a command asks."""
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_stream_is_deleted_after_asking(call, service, at, answer):
    service.post("/patterns", {"stream": "s", "text": "PATTERN p EVENT A a"})
    answer("n\n")
    status, out, _ = call("streams", "rm", "s", "--cascade", *at)
    assert status == 1
    assert out.splitlines()[:2] == ["kind     name  state", "pattern  p     active"]
    status, _, err = call("streams", "rm", "s", "--yes", *at)
    assert status == 2
    assert "the stream 's' is in use: delete the pattern p first, or" in err
    answer("y\n")
    status, _, err = call("streams", "rm", "s", "--cascade", *at)
    assert (status, service.get("/streams")["items"]) == (0, [])
    assert "the stream s is deleted" in err


def test_a_stream_in_use_is_refused_before_asking(call, service, at, answer):
    service.post("/patterns", {"stream": "s", "text": "PATTERN p EVENT A a"})
    answer("y\n")
    status, out, err = call("streams", "delete", "s", *at)
    assert (status, out.splitlines()[1:], "Delete the stream" in err) == (2, ["pattern  p     active"], False)
    assert "the stream 's' is in use; delete what is listed first, or all of it with --cascade" in " ".join(err.split())
    _, _, err = call("streams", "delete", "s", "--yes", *at)
    assert ("--cascade" in err, "?cascade" in err) == (True, False)
    service.post("/patterns/p/retire", None)
    assert call("streams", "delete", "s", *at)[0] == 0
    assert service.get("/streams")["items"] == []


def test_events_are_listed_and_followed(call, service, at):
    send(service, 1, 2, 3)
    status, out, _ = call("events", "list", "s", "--limit", "2", *at)
    assert (status, out.splitlines()) == (
        0,
        ["1970-01-01T00:00:02.000000Z  k  A  e2  {}", "1970-01-01T00:00:03.000000Z  k  A  e3  {}"],
    )
    _, out, _ = call("events", "list", "--stream", "s", "--after", "0", "--key", "nobody", *at, "--json")
    assert out == ""
    _, out, _ = call("events", "tail", "s", "--after", "0", "--limit", "2", *at, "--json")
    assert [orjson.loads(line)["id"] for line in out.splitlines()] == ["e1", "e2"]


def test_more_events_than_the_newest_page_has_are_not_left_out_silently(call, service, at):
    many = [Event(id=f"e{number}", type="A", time_us=number, key="k", data={}) for number in range(1_001)]
    send_events(service, "s", many, "many")
    listing = ("events", "list", "s", *at, "--json")
    for limit, after, count, notice in (
        ("1001", (), 1_000, "only the newest 1,000 events are listed; for all that are kept, start with --after 0"),
        ("1000", (), 1_000, ""),
        ("1001", ("--after", "0"), 1_001, ""),
    ):
        status, out, err = call(*listing, "--limit", limit, *after)
        assert (status, len(out.splitlines())) == (0, count)
        assert notice in err if notice else err == ""


def test_a_range_of_keys_is_finished(call, service, at):
    options = ("--from", "1", "--to", "5", "--by", "order", "--time", "2026-01-01T00:00:00Z")
    status, out, err = call("streams", "punctuate", "s", *options, *at, "--json")
    assert status == 0, err
    announced = orjson.loads(out)
    assert "no active join has an input of the stream 's' with the key 'order'" in announced.pop("warnings")[0]
    assert announced | {"before": None} == {
        "before": None,
        "key": None,
        "keys": [],
        "range": {"from": 1, "to": 5},
        "by": "order",
        "time": "2026-01-01T00:00:00Z",
    }
    status, out, _ = call("streams", "punctuate", "s", "--before", "2026-01-01T00:00:00Z", *at)
    assert (status, out.splitlines()) == (0, ["stream: s", "before: 2026-01-01T00:00:00Z"])
    status, out, _ = call("streams", "punctuate", "s", "--key", "a", "--key", "b", *at, "--json")
    assert (status, orjson.loads(out)["keys"]) == (0, ["a", "b"])


def test_a_punctuation_says_something(call, service, at):
    status, _, err = call("streams", "punctuate", "s", *at)
    assert (status, "give --before, --key, --from or --to" in " ".join(err.split())) == (2, True)


@pytest.mark.parametrize("named", [(), ("s", "--stream", "s")])
def test_events_are_of_one_stream(call, named):
    status, _, err = call("events", "list", *named, "--url", "http://127.0.0.1:1")
    assert (status, "name one stream" in err) == (2, True)
