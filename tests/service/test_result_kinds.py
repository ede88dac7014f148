"""A kind of operator brings its own kind of result, and nothing in the service has to know it."""

import orjson
import pytest

from service import AlertSink, Stores, WebhookDraft, WebhookLibrary
from service.errors import WebhookRefused
from service.observing.metrics import render_metrics
from service.settings import Limits
from shards import ShardState, result_table
from shards.kinds import KINDS, KINDS_BY_NAME
from streams import Definition, Input, OperatorOn, StreamDeclaration, StreamOn
from tests.builders.shards import Step, event, log_of
from tests.contracts.tally import TALLY, TallyKind

pytestmark = pytest.mark.redis

ON = OperatorOn(Definition(kind="tally", name="pairs", version=1, inputs=(Input("orders"),), body={"every": 2}))


@pytest.fixture
def stores(client, server_url, settings):
    return Stores(client, server_url, settings, result_table((*KINDS, TallyKind())))


@pytest.fixture
def rows():
    steps: list[Step] = [StreamOn(StreamDeclaration(name="orders")), ON, [event(number, "A") for number in range(1, 6)]]
    return ShardState(0, kinds={**KINDS_BY_NAME, "tally": TallyKind()}).apply(log_of(steps)[0])


def test_results_of_a_second_kind_are_counted_and_listed_once(stores, clock, rows):
    for _ in range(2):
        AlertSink(stores, clock)(rows, 1)
    assert [(found["tally"], found["n"]) for found in stores.results["tally"].page(9).items] == [
        ("pairs", 4),
        ("pairs", 2),
    ]
    assert stores.results["tally"].counts() == [{"stream": "orders", "tally": "pairs", "count": 2}]
    assert stores.results["tally"].page(9, stream="payments").items == []


def test_they_have_a_metric(stores, clock, rows):
    AlertSink(stores, clock)(rows, 1)
    told = render_metrics(stores, Limits(), clock).decode()
    assert 'forestall_tallies_total{stream="orders",tally="pairs"} 2.0' in told


def test_webhooks_get_them_as_they_were_found(stores, settings, clock, rows):
    library = WebhookLibrary(stores, settings, clock)
    template = {"text": "{{tally}} in {{key}}"}
    wanted = library.register(WebhookDraft(url="http://127.0.0.1:1/", kinds=("tally.reached",), template=template))
    library.register(WebhookDraft(url="http://127.0.0.1:1/"))
    AlertSink(stores, clock)(rows, 1)
    found = stores.deliveries.claim(clock.now_us(), 1, 9)
    assert {(one.webhook, one.kind) for one in found} == {(wanted.id, TALLY.delivered_as)}
    assert sorted(one.body for one in found) == sorted(row.body.decode() for row in rows)
    assert orjson.loads(found[0].body)["type"] == "tally.reached"


def test_a_webhook_cannot_ask_for_what_no_operator_reports(stores, settings, clock):
    library = WebhookLibrary(stores, settings, clock)
    with pytest.raises(WebhookRefused, match=r"no result of kind 'tolly'.*tally\.reached"):
        library.register(WebhookDraft(url="http://127.0.0.1:1/", kinds=("alert", "tolly")))
    with pytest.raises(WebhookRefused, match="tally"):
        library.register(WebhookDraft(url="http://127.0.0.1:1/", template={"text": "{{tally}}"}))
