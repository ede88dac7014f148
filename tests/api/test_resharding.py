"""A log that is being divided into more shards refuses events with a reason, and loses none."""

import pytest

from streams import log_key

pytestmark = pytest.mark.redis

EVENT = {"id": "e", "type": "A", "time": "2026-01-01T00:00:00Z", "data": {"id": "k"}}
CALLS = [
    ("/v1/events?stream=orders", EVENT),
    ("/v1/streams", {"name": "others"}),
    ("/v1/patterns", {"stream": "orders", "text": "PATTERN p EVENT A a"}),
    ("/v1/constraints?stream=orders", {"constraints": ["prior(A, B)"]}),
    ("/v1/streams/orders/punctuations", {"before": "2026-01-01T00:00:00Z"}),
    ("/v1/traces/orders/k/end", {}),
]


@pytest.mark.parametrize(("path", "body"), CALLS)
def test_what_would_be_appended_is_a_503_until_the_log_goes_on(orders, stores, check_problem, path, body):
    def sizes():
        return [stores.client.xlen(log_key(shard)) for shard in range(3)]

    before, token = sizes(), stores.log.layout.hold()
    answer = orders.post(path, json=body)
    assert "send the same again" in check_problem(answer, 503, "log-resharding")["detail"]
    assert int(answer.headers["retry-after"]) >= 1
    assert sizes() == before
    stores.log.layout.release(token)
    assert orders.post(path, json=body).is_success
    assert sizes() != before


def test_what_there_is_can_be_read_while_the_log_is_divided(orders, stores):
    token = stores.log.layout.hold()
    for path in ("/v1/streams", "/v1/alerts", "/v1/pipeline", "/metrics"):
        assert orders.get(path).status_code == 200
    stores.log.layout.release(token)
