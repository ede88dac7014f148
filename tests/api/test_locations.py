"""The address of what was created, in the answer to its creation."""

import pytest
from starlette.responses import Response

from api.locations import give_location

pytestmark = pytest.mark.redis

PATTERN = {"stream": "orders", "text": "PATTERN p EVENT A a"}
NEW = [
    ("/v1/streams", {"name": "parcels", "key": "data.id"}),
    ("/v1/constraints?stream=orders", ["exclusive(A, B)"]),
    ("/v1/patterns", PATTERN),
    ("/v1/webhooks", {"url": "http://127.0.0.1:1/"}),
    ("/v1/keys", {"name": "clerk", "scopes": ["read"]}),
    ("/v1/backtests", {"stream": "orders", "pattern": PATTERN["text"], "source": {"log": True}}),
]


@pytest.mark.parametrize(("path", "body"), NEW)
def test_what_was_created_is_at_its_address(orders, path, body):
    made = orders.post(path, json=body)
    assert made.status_code in (201, 202), made.text
    found = orders.get(made.headers["location"])
    assert found.status_code == 200
    assert made.headers["location"].startswith(path.partition("?")[0] + "/")
    name = made.json().get("id") or made.json().get("name") or made.json()["stream"]
    assert made.headers["location"].endswith(f"/{name}")


def test_an_address_is_told_again_to_a_request_that_comes_again(orders):
    first, again = (orders.post("/v1/patterns", json=PATTERN, headers={"Idempotency-Key": "one"}) for _ in range(2))
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"] == "/v1/patterns/p"


def test_names_in_addresses_are_encoded():
    response = Response()
    give_location(response, "streams", "aufträge/1 ?")
    assert response.headers["location"] == "/v1/streams/auftr%C3%A4ge%2F1%20%3F"
