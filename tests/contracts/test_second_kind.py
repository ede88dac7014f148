"""A second kind of operator through everything: registered over HTTP, run by Spark, listed, delivered to a webhook.

Nothing in the packages knows it; it is handed to the application and to the job, as the kinds in ``KINDS`` are.
"""

import asyncio
import os
import random

import httpx
import orjson
import pytest
from pyspark import cloudpickle
from typer.testing import CliRunner

from api import create_app
from pipeline.job import JobOptions, start_query
from pipeline.sources import EventLogOptions
from service import AlertSink, Stores, WebhookDraft, WebhookLibrary
from service.cli.operators import operator_commands
from service.delivery.deliverer import Deliverer
from shards.kinds import KINDS, result_table
from tests.builders.api import serving
from tests.builders.delivering import deliver_due
from tests.builders.job import match_log
from tests.builders.service import HandClock, empty_client, receiving, settings_for
from tests.builders.waiting import PATIENCE_S
from tests.contracts import tally

pytestmark = pytest.mark.redis

KEY = "a-key-for-tests"
KIND = tally.TallyKind()
EVERY_KIND = (*KINDS, KIND)
EVENTS = [
    {"id": f"e{number}", "type": "A", "time": f"2026-01-01T00:00:{number:02}Z", "data": {"id": key}}
    for number, key in enumerate("ababbbaabb", 1)
]
THIRDS = {"a": [7], "b": [5, 10]}  # number of the third, sixth, … event of each key


@pytest.fixture(scope="module")
def settings(server_url):
    return settings_for(server_url, api_key=KEY, webhooks={"allow_private_targets": True})


@pytest.fixture(scope="module")
def api_url(settings):
    with serving(create_app(settings, HandClock(), kinds=(KIND,))) as url:
        yield url


@pytest.fixture
def stores(server_url, settings):
    with empty_client(server_url) as client:
        yield Stores(client, server_url, settings, result_table(EVERY_KIND))


@pytest.fixture
def http(api_url, stores):
    """A client of a service that has the stream ``orders``."""
    with httpx.Client(base_url=api_url, headers={"Authorization": f"Bearer {KEY}"}, timeout=99, verify=False) as client:
        declaration = {"name": "orders", "key": "data.id", "mapping": {"data": "data"}}
        assert client.post("/v1/streams", json=declaration).status_code == 201
        yield client


@pytest.fixture
def options(server_url, settings, tmp_path):
    log = EventLogOptions(redis_url=server_url, shards=settings.shards, snapshots=str(tmp_path / "saved"), wait_ms=20)
    return JobOptions(
        log=log, checkpoint=tmp_path / "checkpoint", handover=tmp_path / "handed", kinds=EVERY_KIND, is_bounded=True
    )


@pytest.fixture
def workers_have_the_tally():
    """Spark's workers get the kind as a value: they cannot import the tests."""
    cloudpickle.register_pickle_by_value(tally)
    yield
    cloudpickle.unregister_pickle_by_value(tally)


def send(http, events):
    answer = http.post("/v1/events?stream=orders", json=events)
    assert answer.json()["accepted"] == len(events)


def thirds(http):
    """What the results that are listed say."""
    listed = http.get("/v1/tallies/thirds/results/tallies").json()
    assert sum(count["count"] for count in listed["counts"]) == len(listed["items"])
    return {key: sorted(found["n"] for found in listed["items"] if found["key"] == key) for key in THIRDS}


@pytest.mark.spark
@pytest.mark.usefixtures("workers_have_the_tally")
def test_it_is_registered_matched_by_spark_listed_and_delivered(http, stores, settings, options, spark):
    with receiving() as receiver:
        answer = http.post("/v1/tallies", json={"name": "thirds", "stream": "orders", "every": 3})
        assert (answer.status_code, answer.headers["location"]) == (201, "/v1/tallies/thirds")
        wanted = WebhookDraft(url=receiver.url, pattern="thirds", kinds=("tally.reached",))
        WebhookLibrary(stores, settings, HandClock()).register(wanted)
        send(http, EVENTS)
        start_query(spark, options, AlertSink(stores, HandClock())).wait()
        assert thirds(http) == THIRDS
        worker = Deliverer(stores, settings.webhooks, HandClock(), random.Random(7))
        assert asyncio.run(deliver_due(worker)) == 3
        delivered = [orjson.loads(body) for body in receiver.bodies]
    assert {(body["type"], body["key"], body["n"]) for body in delivered} == {
        ("tally.reached", key, number) for key, numbers in THIRDS.items() for number in numbers
    }


def test_it_has_the_life_cycle_of_every_kind(http, stores, options):
    sink = AlertSink(stores, HandClock())
    body = {"name": "thirds", "stream": "orders", "every": 3}
    drafted = http.post("/v1/tallies", json={**body, "state": "draft"})
    assert drafted.json()["state"] == "draft"
    send(http, EVENTS[:2])
    assert http.post("/v1/tallies/thirds/activate").json()["state"] == "active"
    assert http.post("/v1/tallies", json=body).status_code == 200
    send(http, EVENTS[2:7])
    assert http.post("/v1/tallies/thirds/pause").json()["state"] == "paused"
    send(http, EVENTS[7:8])
    tag = http.post("/v1/tallies/thirds/resume").headers["etag"]
    second = http.post("/v1/tallies", json={**body, "every": 2}, headers={"If-Match": tag})
    assert (second.json()["version"], second.json()["body"]) == (2, {"every": 2})
    assert http.post("/v1/tallies", json=body, headers={"If-Match": tag}).status_code == 412
    send(http, EVENTS[8:])
    match_log(options, sink)
    assert thirds(http) == {"a": [], "b": [6, 10]}
    versions = http.get("/v1/tallies/thirds/versions").json()["items"]
    assert [(one["version"], one["body"]) for one in versions] == [(1, {"every": 3}), (2, {"every": 2})]
    assert http.post("/v1/tallies/thirds/retire").json()["state"] == "retired"
    refused = http.post("/v1/tallies/thirds/resume")
    assert (refused.status_code, refused.json()["code"]) == (409, "operator-state")
    assert [one["name"] for one in http.get("/v1/tallies?stream=orders").json()["items"]] == ["thirds"]
    assert http.delete("/v1/tallies/thirds").status_code == 204
    gone = http.get("/v1/tallies/thirds")
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown-operator")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "t", "stream": "orders", "every": 0}, 422, "operator-refused"),
        ({"name": "t", "stream": "orders", "every": 2, "evry": 1}, 422, "operator-refused"),
        ({"name": "t", "stream": "nowhere", "every": 2}, 404, "unknown-stream"),
        ({"name": "t", "every": 2}, 422, "operator-refused"),
        ({"stream": "orders", "every": 2}, 422, "wrong-shape"),
    ],
)
def test_what_cannot_run_is_refused(http, body, status, code):
    answer = http.post("/v1/tallies", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_key_for_other_streams_does_not_reach_it(http, api_url):
    assert http.post("/v1/tallies", json={"name": "t", "stream": "orders", "every": 2}).status_code == 201
    assert http.post("/v1/streams", json={"name": "other", "key": "data.id"}).status_code == 201
    new = {"name": "k", "scopes": ["read", "patterns"], "streams": ["other"]}
    key = http.post("/v1/keys", json=new).json()["token"]
    with httpx.Client(
        base_url=api_url, headers={"Authorization": f"Bearer {key}"}, verify=False, timeout=PATIENCE_S
    ) as stranger:
        assert stranger.get("/v1/tallies").json()["items"] == []
        assert stranger.get("/v1/tallies/t").status_code == 404
        assert stranger.delete("/v1/tallies/t").status_code == 404
        assert stranger.post("/v1/tallies", json={"name": "u", "stream": "orders", "every": 2}).status_code == 403
        assert stranger.post("/v1/tallies", json={"name": "u", "stream": "other", "every": 2}).status_code == 201


def test_the_command_line_has_it_too(http, api_url, tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "FORESTALL_API_KEY", KEY)
    app, run = operator_commands("tally", "tallies"), CliRunner().invoke
    document = tmp_path / "thirds.yaml"
    document.write_text("name: thirds\nstream: orders\nevery: 3\n", encoding="utf-8")
    added = run(app, ["add", str(document), "--url", api_url])
    assert "thirds: version 1 on orders, active" in added.output
    assert "paused" in run(app, ["pause", "thirds", "--url", api_url]).output
    assert '"every":3' in run(app, ["list", "--json", "--url", api_url]).output
    assert run(app, ["delete", "thirds", "--url", api_url]).exit_code == 0
    assert http.get("/v1/tallies").json()["items"] == []
