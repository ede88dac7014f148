"""The client against the real API: patience, idempotency, problems in words; and ``forestall replay`` on top of it."""

import sys
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import httpx
import orjson
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv
from pyarrow.parquet import write_table

from api import create_app
from service.cli import main
from service.client import AccessDenied, Client, ResourceMissing, ServiceUnreachable
from service.embedded import free_port
from service.readiness import await_ready, missing_part
from service.sending import send_events
from streams import Event
from tests.builders.api import serving
from tests.builders.service import answering, settings_for, sink_row
from tests.builders.waiting import PATIENCE_S

KEY = "a-key-for-tests"


@pytest.fixture
def api_url(server_url, stores, clock):
    with serving(create_app(settings_for(server_url, api_key=KEY), clock)) as url:
        yield url


@pytest.fixture
def caller(api_url):
    with Client(api_url, KEY, patience_s=60) as caller:
        yield caller


def events(count):
    return [Event(id=f"e{n}", type="A", time_us=n, key=f"k{n % 3}", data={"v": n}) for n in range(count)]


def logged(stores):
    batches = [list(stores.log.read_range(shard)) for shard in range(stores.log.shards())]
    return sum(entry.kind == "events" for entries in batches for entry in entries)


def test_events_are_sent_once_however_often_the_call_is_made(caller, stores):
    caller.post("/streams", {"name": "orders"})
    first = send_events(caller, "orders", events(9), "batch-1")
    entries = logged(stores)
    again = send_events(caller, "orders", events(9), "batch-1")
    assert (first["accepted"], again["accepted"]) == (9, 9)
    assert logged(stores) == entries


@pytest.fixture
def forgetful(api_url):
    """A way to the API on which the first answer to a POST is lost."""
    lost: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            names = ("authorization", "content-type", "idempotency-key")
            headers = {name: self.headers[name] for name in names}
            answer = httpx.post(
                f"{api_url}{self.path}", content=body, headers=headers, verify=False, timeout=PATIENCE_S
            )
            if not lost:
                lost.append(self.path)
                self.close_connection = True
                return
            self.send_response(answer.status_code)
            self.send_header("content-length", str(len(answer.content)))
            self.send_header("content-type", answer.headers["content-type"])
            self.end_headers()
            self.wfile.write(answer.content)

    with answering(Handler) as url:
        yield url


@pytest.mark.parametrize(
    ("group", "words", "member"),
    [
        ("webhooks", ("add", "https://8.8.8.8/"), "secret"),
        ("keys", ("create", "shop", "--scope", "read"), "token"),
    ],
)
def test_what_was_made_though_the_answer_was_lost_is_not_made_again(
    caller, forgetful, capsys, monkeypatch, group, words, member
):
    monkeypatch.setattr(sys, "argv", ["forestall", group, *words, "--url", forgetful, "--api-key", KEY])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    (made,) = caller.get(f"/{group}")["items"]
    assert (ended.value.code, said.out) == (0, "")
    assert f"{made['id']} exists, but the answer with its {member} was lost" in said.err


def test_a_refused_call_says_what_the_service_said(caller):
    with pytest.raises(ResourceMissing, match=r"POST /v1/events was refused \(404\): .*'nowhere'"):
        send_events(caller, "nowhere", events(1), "x")


def test_a_wrong_key_is_refused(api_url, caller):
    with Client(api_url, "another-key") as stranger, pytest.raises(AccessDenied, match="401"):
        stranger.get("/streams")


def test_nobody_there_is_said_after_the_patience_is_over():
    url = f"http://127.0.0.1:{free_port()}"
    with Client(url, patience_s=0.2) as client, pytest.raises(ServiceUnreachable, match="does not answer"):
        client.get("/streams")
    with Client(url) as client:
        assert missing_part(client) == "starting the API"


class Starting:
    """A service that gets ready after some answers, and the clock that they take."""

    def __init__(self, monkeypatch, reasons):
        self.now, self._reasons = 0.0, iter(reasons)
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=lambda _: None)
        monkeypatch.setattr("service.readiness.time", clock)

    def missing(self):
        self.now += 10.0
        return next(self._reasons)


def test_patience_begins_anew_with_each_kernel_that_is_compiled(monkeypatch):
    said: list[str] = []
    compiling = [f"waiting for the pipeline: compiling kernels, {done} of 9" for done in range(9)]
    assert await_ready(Starting(monkeypatch, [*compiling, "starting", None]).missing, said.append, 25.0) is None
    assert said == [*compiling, "starting"]


@pytest.mark.parametrize("reason", ["starting Spark", "compiling kernels, 3 of 9"])
def test_without_progress_patience_ends(monkeypatch, reason):
    service = Starting(monkeypatch, [reason] * 9)
    assert await_ready(service.missing, lambda _: None, 25.0) == reason
    assert 25.0 < service.now < 50.0


def test_pages_are_followed_to_the_end(caller, stores):
    rows = [
        sink_row(
            kind="alert",
            stream="orders",
            id=f"{n:032x}",
            body=orjson.dumps(
                {
                    "id": f"{n:032x}",
                    "stream": "orders",
                    "pattern": "p",
                    "version": 1,
                    "key": "k",
                    "start": "2026-01-01T00:00:00Z",
                    "end": "2026-01-01T00:00:00Z",
                    "detected_at": "2026-01-01T00:00:00Z",
                    "bindings": {"a": [f"e{n}"]},
                    "why": "e is A a",
                }
            ),
        )
        for n in range(1_200)
    ]
    stores.alerts.append(rows, [], 0)
    caller.post("/streams", {"name": "orders"})
    assert [alert["id"] for alert in caller.pages("/alerts", stream="orders", order="asc")] == [row.id for row in rows]


def replayed(monkeypatch, capsys, *arguments):
    monkeypatch.setenv("FORESTALL_API_KEY", KEY)
    monkeypatch.setattr(sys, "argv", ["forestall", "replay", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().err


def test_replay_declares_the_stream_and_sends_the_file_in_batches(
    api_url, caller, stores, monkeypatch, capsys, tmp_path
):
    file = tmp_path / "events.csv"
    file.write_text("type,time,key,v\n" + "".join(f"A,{n},k{n % 3},{n}\n" for n in range(25)))
    status, said = replayed(
        monkeypatch, capsys, str(file), "--stream", "orders", "--declare", "--end", "A", "--url", api_url,
        "--batch-size", "10",
    )  # fmt: skip
    assert status == 0
    assert "25 of 25 events sent to orders" in said
    assert caller.get("/streams/orders")["end_events"] == ["A"]
    assert logged(stores) >= 3


def test_replay_says_which_events_were_rejected(api_url, caller, monkeypatch, capsys, tmp_path):
    caller.post("/streams", {"name": "orders", "event_types": ["A"]})
    file = tmp_path / "events.csv"
    file.write_text("type,time,key\nA,1,k\nB,2,k\n")
    status, said = replayed(monkeypatch, capsys, str(file), "--stream", "orders", "--url", api_url)
    assert status == 1
    assert "1 of 2 events sent to orders" in said
    assert "rejected event 1" in said


ROW = {"type": "A", "time": 1, "key": "o-1"}
GROWING = {
    "own ids that look like positions": [{"id": f"o-1:{n}"} for n in (1, 2, 3)],
    "own ids": [{"id": f"e{n}"} for n in (1, 2, 3)],
}


@pytest.mark.parametrize("name", GROWING)
def test_a_file_that_has_grown_is_replayed_without_its_earlier_events(
    api_url, caller, monkeypatch, capsys, tmp_path, name
):
    caller.post("/streams", {"name": "orders"})
    file = tmp_path / "events.jsonl"
    lines = [orjson.dumps(ROW | own).decode() + "\n" for own in GROWING[name]]
    said = ""
    for count in (2, 3):
        file.write_text("".join(lines[:count]))
        _, said = replayed(monkeypatch, capsys, str(file), "--stream", "orders", "--url", api_url)
    assert "1 of 3 events sent to orders" in said
    assert "2 were dropped" in said


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_events_of_files_without_ids_are_told_apart_by_their_file(
    api_url, caller, monkeypatch, capsys, tmp_path, ending
):
    caller.post("/streams", {"name": "orders"})
    counts = []
    for name in ("a", "b", "a"):
        file, table = tmp_path / f"{name}.{ending}", pa.table({"type": ["A"], "time": [1], "key": ["k"], "v": [name]})
        (write_csv if ending == "csv" else write_table)(table, file)
        _, said = replayed(monkeypatch, capsys, str(file), "--stream", "orders", "--url", api_url)
        counts.append(said.split(" event sent")[0].splitlines()[-1])
    assert counts == ["1 of 1", "1 of 1", "0 of 1"]


def test_replay_to_an_unknown_stream_is_refused_in_one_sentence(api_url, caller, monkeypatch, capsys, tmp_path):
    file = tmp_path / "events.csv"
    file.write_text("type,time,key\nA,1,k\n")
    status, said = replayed(monkeypatch, capsys, str(file), "--stream", "nowhere", "--url", api_url)
    assert status == 2
    assert said.startswith("error: ")
    assert "nowhere" in said
