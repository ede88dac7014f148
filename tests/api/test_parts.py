"""Lists of declared resources in parts: the whole list without a limit, otherwise one part after another."""

import pytest

pytestmark = pytest.mark.redis


@pytest.fixture
def declared(orders):
    for name in ("a", "b", "c"):
        assert orders.post("/v1/streams", json={"name": name, "key": "data.id"}).status_code == 201
        text = f"PATTERN p{name} EVENT SEQ(A a, B b)"
        assert orders.post("/v1/patterns", json={"stream": name, "text": text}).status_code == 201
        assert orders.post("/v1/constraints", json={"stream": name, "constraints": ["exclusive(B, C)"]}).is_success
        assert orders.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/"}).status_code == 201
        assert orders.put(f"/v1/streams/orders/event-types/{name}", json={"type": "object"}).status_code == 201
        assert orders.post("/v1/keys", json={"name": name, "scopes": ["read"]}).status_code == 201
        assert orders.put(f"/v1/projects/{name}", json={"resources": [{"kind": "stream", "name": name}]}).is_success
    return orders


@pytest.mark.parametrize(
    "path", ["streams", "patterns", "constraints", "webhooks", "keys", "projects", "streams/orders/event-types"]
)
def test_parts_hold_every_item_once(declared, check_problem, path):
    whole = declared.get(f"/v1/{path}").json()
    assert (len(whole["items"]) >= 3, whole["next"]) == (True, None)
    found: list[object] = []
    after: dict[str, str | None] = {}
    while after != {"after": None}:
        part = declared.get(f"/v1/{path}", params={"limit": 2, **after}).json()
        assert len(part["items"]) <= 2
        found += part["items"]
        after = {"after": part["next"]}
    assert found == whole["items"]
    check_problem(declared.get(f"/v1/{path}?after=nothing"), 400, "invalid-cursor")
    check_problem(declared.get(f"/v1/{path}?limit=0"), 422, "wrong-shape")
