"""The names ``.`` and ``..``: refused at registration; stored patterns that have them are still read and deleted."""

import pytest

from service.client import part
from service.stores.registry.registered import OperatorDraft

pytestmark = pytest.mark.redis

DOTS = pytest.mark.parametrize("name", [".", ".."])


def pattern(name):
    return {"stream": "orders", "text": f"PATTERN `{name}` EVENT SEQ(A a, B b)"}


@DOTS
def test_dots_are_no_names(orders, check_problem, name):
    suppressed = {**pattern(name), "suppress": {"for": "1 h"}}
    for body in (pattern(name), {**pattern(name), "state": "draft"}, suppressed):
        document = check_problem(orders.post("/v1/patterns", json=body), 422, "operator-refused")
        assert "'.' and '..'" in document["detail"]
    totals = {"name": name, "of": "orders", "values": {"n": "count()"}, "window": "1 h"}
    assert orders.post("/v1/aggregates", json=totals).status_code in (400, 422)
    path = part(name)
    check_problem(orders.put(f"/v1/streams/orders/event-types/{path}", json={}), 422, "wrong-shape")
    check_problem(orders.put(f"/v1/projects/{path}", json={"resources": []}), 422, "wrong-shape")
    assert orders.get("/v1/patterns").json()["items"] == orders.get("/v1/projects").json()["items"] == []
    assert [stream["name"] for stream in orders.get("/v1/streams").json()["items"]] == ["orders"]
    assert orders.post("/v1/patterns", json=pattern("...")).status_code == 201


@DOTS
def test_stored_patterns_with_such_names_are_read_paused_and_deleted(orders, monkeypatch, name):
    with monkeypatch.context() as earlier:
        earlier.setattr(OperatorDraft, "__post_init__", lambda _: None, raising=False)
        assert orders.post("/v1/patterns", json=pattern(name)).status_code == 201
    path = f"/v1/patterns/{part(name)}"
    assert orders.get(path).json()["name"] == name
    assert orders.post(f"{path}/pause").json()["state"] == "paused"
    assert orders.delete(path).status_code == 204
    assert orders.get("/v1/patterns").json()["items"] == []
