"""What a key learns about itself."""

import pytest

pytestmark = pytest.mark.redis


def test_a_key_learns_its_rights(orders, holder):
    found = holder("read", "patterns", streams=["orders"]).get("/v1/caller").json()
    assert (found["name"], sorted(found["scopes"]), found["streams"]) == ("holder", ["patterns", "read"], ["orders"])
    assert found["id"] in [key["id"] for key in orders.get("/v1/keys").json()["items"]]


def test_the_key_of_the_environment_has_all_rights(http):
    assert http.get("/v1/caller").json()["scopes"] == ["admin"]


def test_nobody_learns_nothing(stranger):
    assert stranger.get("/v1/caller").status_code == 401
