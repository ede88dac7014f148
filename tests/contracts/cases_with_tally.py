"""Everything that loops over the table of kinds, with the tally in it (``test_kind_in_table.py``)."""

import re

import httpx
import orjson
import pytest
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from api import create_app
from pipeline.job import JobOptions
from pipeline.sources import EventLogOptions
from service import AlertSink, Stores
from service.cli.app import build_app, commands, listing
from service.doctor import EVERYTHING
from shards import DOCUMENT_KINDS, EXERCISES, RESULT_KINDS
from streams.compiling import run_exercise
from tests.builders.api import serving
from tests.builders.job import match_log
from tests.builders.service import HandClock, empty_client, settings_for

KEY = "a-key-for-tests"
DOCUMENT = {"name": "thirds", "stream": "orders", "every": 3}
PLACE = "/v1/tallies"
EVENTS = [{"id": f"e{n}", "type": "A", "time": f"2026-01-01T00:00:0{n}Z", "data": {"id": "k"}} for n in range(1, 8)]


@pytest.fixture(scope="module")
def settings(server_url):
    return settings_for(server_url, api_key=KEY, webhooks={"allow_private_targets": True})


@pytest.fixture(scope="module")
def app(settings):
    return create_app(settings, HandClock())


@pytest.fixture(scope="module")
def api_url(app):
    with serving(app) as url:
        yield url


@pytest.fixture
def stores(server_url, settings):
    with empty_client(server_url) as client:
        yield Stores(client, server_url, settings)


@pytest.fixture
def http(api_url, stores):
    with httpx.Client(base_url=api_url, headers={"Authorization": f"Bearer {KEY}"}, timeout=300) as client:
        declared = client.post("/v1/streams", json={"name": "orders", "key": "data.id", "mapping": {"data": "data"}})
        assert declared.status_code == 201
        yield client


@pytest.fixture
def matched(http, stores, server_url, settings, tmp_path):
    """Sends the events and matches them."""

    def run():
        assert http.post("/v1/events?stream=orders", json=EVENTS).json()["accepted"] == len(EVENTS)
        log = EventLogOptions(redis_url=server_url, shards=settings.shards, snapshots=str(tmp_path / "saved"))
        options = JobOptions(log=log, checkpoint=tmp_path / "checkpoint", handover=tmp_path / "handed")
        match_log(options, AlertSink(stores, HandClock()))

    return run


@pytest.fixture
def command(http, api_url, monkeypatch, tmp_path):
    """Runs a command and returns what it prints."""
    monkeypatch.setenv("FORESTALL_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thirds.yaml").write_text(yaml.safe_dump(DOCUMENT))

    def run(*words, status=0):
        done = CliRunner().invoke(build_app(words[:1]), [*words, "--url", api_url])
        assert done.exit_code == status, (words, done.output, done.exception)
        return done.output

    return run


def test_every_route_of_the_kind_answers(app, http, matched):
    routes = {
        (method.upper(), path)
        for path, item in app.openapi()["paths"].items()
        if path.startswith(PLACE)
        for method in item
    }
    calls = [
        ("POST", PLACE, 201),
        ("PUT", f"{PLACE}/{{name}}", 200),
        ("GET", PLACE, 200),
        ("GET", f"{PLACE}/{{name}}", 200),
        ("GET", f"{PLACE}/{{name}}/versions", 200),
        ("GET", f"{PLACE}/{{name}}/explanation", 200),
        ("GET", f"{PLACE}/{{name}}/results/tallies", 200),
        ("POST", f"{PLACE}/{{name}}/pause", 200),
        ("POST", f"{PLACE}/{{name}}/resume", 200),
        ("POST", f"{PLACE}/{{name}}/retire", 200),
        ("DELETE", f"{PLACE}/{{name}}", 204),
    ]
    assert http.post(PLACE, json={**DOCUMENT, "name": "draft", "state": "draft"}).status_code == 201
    assert http.post(f"{PLACE}/draft/activate").json()["state"] == "active"
    found = {}
    for method, path, status in calls:
        answer = http.request(
            method, path.replace("{name}", "thirds"), json=DOCUMENT if method == "PUT" or path == PLACE else None
        )
        assert answer.status_code == status, (method, path, answer.text)
        found[method, path] = answer
        if (method, path) == ("POST", PLACE):
            matched()
    assert {(method, re.sub(r"\{name:path\}", "{name}", path)) for method, path in routes} == {
        *found,
        ("POST", f"{PLACE}/{{name}}/activate"),
    }
    results = found["GET", f"{PLACE}/{{name}}/results/tallies"].json()
    assert sorted(one["n"] for one in results["items"]) == [3, 6]
    assert 'tallies_total{stream="orders",tally="thirds"} 2' in http.get("/metrics").text.replace("forestall_", "")


def test_every_command_of_the_kind_runs(http, matched, command):
    assert "thirds: version 1 on orders, active" in command("tallies", "add", "thirds.yaml")
    matched()
    http.post(PLACE, json={**DOCUMENT, "name": "draft", "state": "draft"})
    words = {
        "activate": "draft",
        "add": "thirds.yaml",
        "change": "thirds.yaml",
        "delete": "draft",
        "list": "",
        "retire": "draft",
    }
    group = vars(get_command(build_app(["tallies"])))["commands"]["tallies"]
    order = ["add", "change", "activate", "list", "show", "explain", "pause", "resume", "retire", "delete"]
    assert sorted(group.commands) == sorted(order)
    for name in order:
        command("tallies", name, *filter(None, [words.get(name, "thirds")]))
    assert "Tallies of the running service." in commands()["tallies"]
    assert "tallies" in vars(get_command(listing()))["commands"]


def test_a_project_with_it_is_applied_exported_planned_and_pruned(http, command, tmp_path):
    folder = tmp_path / "rules"
    folder.mkdir()
    stream = {"kind": "stream", "name": "orders", "key": "data.id", "mapping": {"data": "data"}}
    documents = [stream, {"kind": "tally", **DOCUMENT}]
    (folder / "project.yaml").write_text(yaml.safe_dump_all(documents))
    assert "tally thirds" in command("apply", "rules", "--plan", status=1)
    command("apply", "rules")
    assert http.get(f"{PLACE}/thirds").json()["body"] == {"every": 3}
    command("export", "exported")
    exported = [one for path in (tmp_path / "exported").rglob("*.yaml") for one in yaml.safe_load_all(path.read_text())]
    assert {"kind": "tally", "name": "thirds", "every": 3} in [
        {name: one[name] for name in ("kind", "name", "every") if name in one} for one in exported
    ]
    assert "tally" not in command("apply", "exported", "--plan")
    (folder / "project.yaml").write_text(yaml.safe_dump(stream))
    assert "tally thirds" in command("apply", "rules", "--plan", "--prune", status=1)


def test_webhooks_status_and_streams_know_it(http, matched, command):
    http.post(PLACE, json=DOCUMENT)
    matched()
    body = {"url": "http://127.0.0.1:9/hook", "kinds": ["tally.reached"], "pattern": "thirds"}
    added = http.post("/v1/webhooks", json=body)
    assert added.status_code == 201, added.text
    command("webhooks", "list")
    assert "orders" in command("status", status=1)  # nothing runs the pipeline
    refused = http.delete("/v1/streams/orders")
    assert (refused.status_code, "tally thirds" in refused.json()["detail"]) == (409, True), refused.text
    said = http.post("/v1/streams/orders/punctuations", json={"range": {"to": 5}}).json()
    assert "the range finishes nothing" in orjson.dumps(said).decode()


def test_its_exercise_is_compiled_with_the_others():
    (kind,) = (kind for kind in DOCUMENT_KINDS if kind.name == "tally")
    assert kind.exercise in EXERCISES
    assert set(EXERCISES) <= set(EVERYTHING)
    run_exercise(kind.exercise)
    assert [name for name in RESULT_KINDS if name == "tally"]
