"""One trace from the request that brings an event to its alert and the alert's webhooks, as exported to a collector."""

import asyncio
import random
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from api import create_app
from service import AlertSink, Stores, WebhookDraft, WebhookLibrary, open_spans
from service.delivery.deliverer import Deliverer
from service.errors import TracerMissing
from service.settings import TracingSettings
from streams import SystemClock
from tests.builders.api import serving
from tests.builders.delivering import deliver_due
from tests.builders.service import empty_client, receiving, settings_for
from tests.builders.shards import run_inline

pytestmark = pytest.mark.redis

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
OTHER = "0af7651916cd43dd8448eb211c80319c"
SEQ = "PATTERN seq EVENT SEQ(A a, B b) WITHIN 1 h"
UNREACHABLE = "http://127.0.0.1:9"  # no server listens on the port for discarding
PATIENCE_S = 300.0


def event(number, type_, second, key="k"):
    time_ = datetime(2026, 1, 1, 9, 0, second, tzinfo=UTC).isoformat()
    return {"id": f"e{number}", "type": type_, "time": time_, "key": key}


def spans_of(collector):
    """Every span that the collector received, each with the name of its service."""
    found = []
    for body in collector.bodies:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {one.key: one.value.string_value for one in resource.resource.attributes}
            found += [(named["service.name"], span) for scope in resource.scope_spans for span in scope.spans]
    return found


def attributes_of(span):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


class Service:
    """The API with tracing, and the steps of the matching and delivering processes, called in turn."""

    def __init__(self, settings, stores, url, hook):
        self.settings, self.stores, self.url, self.hook = settings, stores, url, hook
        self.shards = {}

    def send(self, events, traceparent=None, **more):
        headers = {} if traceparent is None else {"traceparent": traceparent}
        with httpx.Client(base_url=self.url, timeout=PATIENCE_S, verify=False) as client:
            answer = client.post("/v1/events?stream=s", json=events, headers=headers | more)
        assert answer.status_code == 202, answer.text
        assert answer.json()["accepted"] == len(events)

    def prepare(self, pattern=SEQ, **declared):
        with httpx.Client(base_url=self.url, timeout=PATIENCE_S, verify=False) as client:
            assert client.post("/v1/streams", json={"name": "s", **declared}).status_code == 201
            assert client.post("/v1/patterns", json={"stream": "s", "text": pattern}).status_code == 201
        WebhookLibrary(self.stores, self.settings, SystemClock()).register(WebhookDraft(url=self.hook.url))

    def rows(self):
        return run_inline({shard: list(self.stores.log.read_range(shard)) for shard in range(self.settings.shards)})

    def places(self, word):
        shards = {shard: self.stores.log.read_range(shard) for shard in range(self.settings.shards)}
        entries = [(shard, entry) for shard, found in shards.items() for entry in found if entry.kind == "events"]
        return [(shard, entry.position) for shard, entry in entries if word in entry.body]

    def match(self, times=1):
        spans = open_spans(self.settings.tracing, "pipeline")
        for _ in range(times):
            AlertSink(self.stores, SystemClock(), spans)(self.rows(), 1)
        if spans is not None:
            spans.close()

    def deliver(self):
        spans = open_spans(self.settings.tracing, "deliverer")
        worker = Deliverer(self.stores, self.settings.webhooks, SystemClock(), random.Random(7), spans=spans)
        made = asyncio.run(deliver_due(worker))
        if spans is not None:
            spans.close()
        return made


@pytest.fixture
def collector():
    with receiving() as collector:
        yield collector


@pytest.fixture
def running(server_url):
    """Runs the API with the given tracing settings; all its spans are exported when the block ends."""

    @contextmanager
    def running(**tracing):
        settings = settings_for(server_url, tracing=tracing, webhooks={"allow_private_targets": True})
        with empty_client(server_url) as client, receiving() as hook:
            stores = Stores(client, server_url, settings)
            with serving(create_app(settings)) as url:
                yield Service(settings, stores, url, hook)

    return running


def test_one_trace_from_the_request_over_the_alert_to_the_webhook(running, collector):
    begun_ns = time.time_ns()
    with running(endpoint=collector.site) as service:
        service.prepare()
        service.send([event(1, "A", 1)], f"00-{OTHER}-{SPAN}-01")
        service.send([event(2, "B", 2)], f"00-{TRACE}-{SPAN}-01")
        service.match()
        assert service.deliver() == 1
        ((headers, _),) = service.hook.received
        (alert,) = service.stores.alerts.page().items
        (webhook,) = service.stores.webhooks.all()
        (entry,) = service.places(b"e2")
    assert set(collector.paths) == {"/v1/traces"}
    told = {(process, span.name): span for process, span in spans_of(collector) if span.trace_id.hex() == TRACE}
    order = ["forestall-api", "forestall-pipeline", "forestall-deliverer"]
    assert set(told) == {
        ("forestall-api", "POST /v1/events"),
        ("forestall-pipeline", "alert seq"),
        ("forestall-deliverer", f"webhook {webhook.id}"),
    }
    request, found, sent = (told[name] for name in sorted(told, key=lambda name: order.index(name[0])))
    assert request.parent_span_id.hex() == SPAN
    assert found.parent_span_id == request.span_id
    assert sent.parent_span_id == found.span_id
    assert headers["traceparent"] == f"00-{TRACE}-{sent.span_id.hex()}-01"
    assert attributes_of(found) == {
        "forestall.alert.id": alert["id"],
        "forestall.stream": "s",
        "forestall.pattern": "seq",
        "forestall.pattern.version": 1,
        "forestall.key": "k",
        "forestall.shard": entry[0],
        "forestall.log.position": entry[1],
    }
    assert [link.trace_id.hex() for link in found.links] == [OTHER]
    assert found.start_time_unix_nano == int(entry[1].partition("-")[0]) * 1_000_000
    assert begun_ns // 1_000_000 <= found.start_time_unix_nano // 1_000_000 <= found.end_time_unix_nano // 1_000_000
    assert sent.start_time_unix_nano >= found.end_time_unix_nano
    assert attributes_of(sent) == {
        "forestall.webhook.id": webhook.id,
        "forestall.alert.id": alert["id"],
        "forestall.attempt": 1,
        "http.request.method": "POST",
        "server.address": "127.0.0.1",
        "http.response.status_code": 200,
    }


def test_a_request_without_a_trace_begins_one(running, collector):
    with running(endpoint=f"{collector.site}/v1/traces") as service:
        service.prepare()
        service.send([event(1, "A", 1), event(2, "B", 2)])
        service.match()
        service.deliver()
    spans = [span for _, span in spans_of(collector)]
    assert [span.name.partition(" ")[0] for span in spans] == ["alert", "webhook", "POST"]
    assert len({span.trace_id for span in spans}) == 1
    assert [span.parent_span_id for span in spans if span.name == "POST /v1/events"] == [b""]
    assert [list(span.links) for span in spans] == [[], [], []]


def test_an_event_that_waited_in_the_reorder_buffer_keeps_its_trace(running, collector):
    with running(endpoint=collector.site) as service:
        service.prepare(lateness=10)
        service.send([event(2, "B", 2)], f"00-{TRACE}-{SPAN}-01")
        service.send([event(1, "A", 1)], f"00-{OTHER}-{SPAN}-01")
        service.send([event(3, "C", 30)])
        service.match()
    (found,) = [span for _, span in spans_of(collector) if span.name == "alert seq"]
    assert found.trace_id.hex() == TRACE


@pytest.mark.parametrize(
    ("tracing", "traceparent"), [({"sample_ratio": 0}, None), ({}, f"00-{TRACE}-{SPAN}-00"), ({"endpoint": None}, None)]
)
def test_what_is_not_sampled_is_neither_told_nor_remembered(running, collector, tracing, traceparent):
    with running(**{"endpoint": collector.site, **tracing}) as service:
        service.prepare()
        service.send([event(1, "A", 1), event(2, "B", 2)], traceparent)
        service.match()
        assert service.deliver() == 1
        ((headers, _),) = service.hook.received
        assert service.stores.client.keys("*request-contexts*") == []
    assert "traceparent" not in headers
    assert collector.received == []


def test_the_alert_of_an_untraced_last_event_is_in_no_trace(running, collector):
    with running(endpoint=collector.site, sample_ratio=0) as service:
        service.prepare()
        service.send([event(1, "A", 1)], f"00-{TRACE}-{SPAN}-01")
        service.send([event(2, "B", 2)])
        service.match()
        assert service.deliver() == 1
    assert [span.name for _, span in spans_of(collector)] == ["POST /v1/events"]


def test_a_micro_batch_that_is_written_again_doubles_spans_and_nothing_else(running, collector):
    with running(endpoint=collector.site) as service:
        service.prepare()
        service.send([event(1, "A", 1), event(2, "B", 2)], f"00-{TRACE}-{SPAN}-01")
        service.match(times=2)
        assert service.deliver() == 1
        assert len(service.stores.alerts.page().items) == 1
    spans = [span for _, span in spans_of(collector)]
    first, again = (span for span in spans if span.name == "alert seq")
    (sent,) = (span for span in spans if span.name.startswith("webhook"))
    assert first.trace_id == again.trace_id
    assert sent.parent_span_id == first.span_id


def test_a_failed_attempt_says_why_and_the_next_one_is_a_span_of_its_own(running, collector):
    with running(endpoint=collector.site) as service:
        service.prepare()
        service.send([event(1, "A", 1), event(2, "B", 2)])
        service.match()
        service.hook.statuses = [503]
        assert service.deliver() == 1
        (webhook,) = service.stores.webhooks.all()
        (attempt,) = service.stores.attempts(webhook.id).page(9).items
        (waiting,) = service.stores.deliveries.claim(attempt["next_us"], 1, 9)
        assert waiting.traceparent is not None
    (sent,) = (span for _, span in spans_of(collector) if span.name.startswith("webhook"))
    assert attributes_of(sent)["http.response.status_code"] == 503
    assert (sent.status.code, sent.status.message) == (2, "the receiver answered 503")
    assert waiting.traceparent.split("-")[1] == sent.trace_id.hex()


def test_a_collector_that_is_not_there_hinders_nothing(running, monkeypatch):
    monkeypatch.setattr("service.observing.spans._SEND_TIMEOUT_S", 0.5)
    with running(endpoint=UNREACHABLE) as service:
        service.prepare()
        for number in range(20):
            service.send([event(2 * number, "A", 1, f"k{number}"), event(2 * number + 1, "B", 2, f"k{number}")])
        service.match()
        assert len(service.stores.alerts.page().items) == 20
        assert service.deliver() == service.settings.webhooks.target_concurrency


def test_a_collector_that_never_answers_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("service.observing.spans._CLOSE_S", 0.2)
    with socket.socket() as listener:  # it takes connections, and nothing from them
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        host, port = listener.getsockname()
        spans = open_spans(TracingSettings(endpoint=f"http://{host}:{port}"), "deliverer")
        assert spans is not None
        for _ in range(10_000):  # more than its queue holds
            spans.begin("webhook", f"00-{TRACE}-{SPAN}-01", {}).end()
        closing = threading.Thread(target=spans.close)
        closing.start()
        closing.join(PATIENCE_S)
        assert not closing.is_alive()


def test_without_the_extra_it_is_said_what_to_install(server_url, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "service.observing.spans", raising=False)
    settings = settings_for(server_url, tracing={"endpoint": UNREACHABLE})
    with pytest.raises(TracerMissing, match=r"opentelemetry\.sdk\.trace is not installed: .* extra otel"):
        create_app(settings)


def test_where_nothing_is_traced_nothing_of_it_is_imported():
    lines = (
        "import sys",
        "from api import create_app",
        "import service.processes.pipeline_process, service.delivery.deliverer",
        "from service import Settings",
        "create_app(Settings())",
        "ours = ('opentelemetry.sdk.trace', 'opentelemetry.exporter', 'service.observing.spans')",
        "print([name for name in sys.modules if name.startswith(ours)])",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
