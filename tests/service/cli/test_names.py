"""Names of streams and operators in commands: suggestions for unknown ones, and the streams of derived events."""

import orjson
import pytest

from service import AlertSink
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis

PATTERN = "PATTERN lost EVENT SEQ(UseRemoteStock r, CancelOrder c) WITHIN 1 d"


@pytest.fixture
def run(call, api_url, stores):
    """Runs ``forestall`` against an API; returns (status, output, errors)."""
    return lambda *arguments: call(*arguments, "--url", api_url)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("alerts", "list", "--stream", "ordrs"), "there is no stream 'ordrs' (did you mean orders?); declare it"),
        (("traces", "list", "ordrs"), "there is no stream 'ordrs' (did you mean orders?); declare it"),
        (("patterns", "show", "lots"), "there is no pattern 'lots' (did you mean lost?); forestall patterns list"),
        (("aggregates", "show", "buzy"), "there is no aggregate 'buzy' (did you mean busy?)"),
        (("patterns", "show", "other"), "there is no pattern 'other'; forestall patterns list lists them"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(run, tmp_path, words, part):
    run("streams", "add", "orders")
    run("patterns", "add", PATTERN, "--stream", "orders")
    (tmp_path / "busy.yaml").write_text("{name: busy, of: orders, values: {n: count()}, window: 1 d}")
    run("aggregates", "add", "busy.yaml")
    status, _, err = run(*words)
    assert (status, part in err) == (2, True), err


def test_derived_events_show_the_stream_by_which_they_are_filtered(run, stores, clock):
    run("streams", "add", "orders")
    made = {"type": "B", "time": "2026-01-01T00:00:00Z", "key": "k", "data": {}, "rekeyed": False}
    body = {
        "id": "d",
        "stream": "orders",
        "into": "shipped",
        "pattern": "late",
        "version": 1,
        "source_key": "k",
        **made,
    }
    AlertSink(stores, clock)([sink_row(kind="derived", stream="orders", id="d", body=orjson.dumps(body))], 1)
    assert run("derived-events", "list", "--stream", "orders")[1].splitlines() == [
        "time                  stream  into     type  key  pattern",
        "2026-01-01T00:00:00Z  orders  shipped  B     k    late",
    ]
