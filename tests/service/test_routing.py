"""Which key a pattern is matched by, and the whole way from a posted event to an alert of a further key."""

from unittest.mock import Mock

import orjson
import pytest

from nfa import KeyMismatch, has_key, parse_pattern
from service import Intake, Registration
from shards import route_of, routed
from shards.kinds.patterns import routing
from streams import StreamDeclaration
from tests.builders.registering import register_pattern
from tests.builders.shards import run_inline

SHOP = StreamDeclaration(name="shop", key="data.order", keys={"customer": "data.customer_id", "place": "data.place"})


def parsed(keys):
    return parse_pattern(f"PATTERN p EVENT SEQ(A a, B b) {keys}")


@pytest.mark.parametrize(
    ("keys", "route", "finer"),
    [
        ("", "", []),
        ("WHERE [key]", "", []),
        ("WHERE [order, region]", "", ["region"]),
        ("WHERE [customer_id, key]", "", ["customer_id"]),
        ("WHERE [customer_id]", "customer", []),
        ("WHERE [customer, w.x]", "customer", ["w.x"]),
        ("WHERE [place, customer_id]", "place", ["customer_id"]),
    ],
)
def test_the_first_declared_key_decides_and_the_others_make_traces_finer(keys, route, finer):
    on_shop = routed(parsed(keys), SHOP)
    assert (on_shop.route, list(on_shop.finer)) == (route, finer)
    assert on_shop.has_whole_traces == (not route and not finer)


def test_without_further_keys_only_the_correlation_key_may_be_named():
    plain = StreamDeclaration(name="shop", key="data.order")
    with pytest.raises(
        KeyMismatch, match=r"write \[key, region\] for finer traces, \[order\] or \[key\] for"
    ) as caught:
        route_of(parsed("WHERE [region]"), plain)
    assert "further" not in caught.value.message
    assert caught.value.details == {"asked": "region", "key": "data.order", "keys": {}}


@pytest.fixture
def registration(stores, settings, clock):
    registration = Registration(stores, settings, clock)
    registration.declare_stream(SHOP)
    return registration


@pytest.fixture
def send(stores, settings, clock):
    """Posts events, each a type, an order and a customer."""
    intake = Intake(stores.log, stores.registry, settings.limits, clock)
    numbers = iter(range(1, 1_000))

    def post(*events):
        objects = [
            {
                "id": f"e{(n := next(numbers))}",
                "type": kind,
                "time": n,
                "data": {"order": order, "customer_id": customer},
            }
            for kind, order, customer in events
        ]
        assert intake.ingest("shop", objects).accepted == len(events)

    return post


def alerts(stores):
    rows = run_inline({shard: stores.log.read_range(shard) for shard in range(stores.log.shards())})
    assert {row.kind for row in rows} <= {"alert"}
    found = [orjson.loads(row.body) for row in rows]
    return sorted(
        (one["pattern"], one["version"], one["key"], one.get("route"), *one["bindings"].values()) for one in found
    )


@pytest.mark.redis
def test_orders_and_customers_are_matched_on_one_stream(registration, send, stores):
    send(("A", "o1", "c1"))
    register_pattern(registration, "shop", "PATTERN order EVENT SEQ(A a, B b)")
    register_pattern(registration, "shop", "PATTERN customer EVENT SEQ(A a, B b) WHERE [customer_id]")
    send(("A", "o2", "c1"), ("A", "o3", "c2"), ("B", "o4", "c1"))
    send(("B", "o3", None), ("B", 5, "c2"))
    assert alerts(stores) == [
        ("customer", 1, "c1", "customer", ["e2"], ["e4"]),
        ("customer", 1, "c2", "customer", ["e3"], ["e6"]),
        ("order", 1, "o3", None, ["e3"], ["e5"]),
    ]


@pytest.mark.redis
def test_a_registration_looks_for_the_key_once(registration, monkeypatch):
    looks = Mock(side_effect=has_key)
    monkeypatch.setattr(routing, "has_key", looks)
    register_pattern(registration, "shop", "PATTERN p EVENT SEQ(A a, B b) WHERE [customer_id, region]")
    assert looks.call_count == 1


@pytest.mark.redis
def test_a_paused_pattern_misses_what_comes_meanwhile(registration, send, stores):
    register_pattern(registration, "shop", "PATTERN customer EVENT SEQ(A a, B b) WHERE [customer_id]")
    send(("A", "o1", "c1"))
    registration.move_pattern("customer", "pause")
    send(("B", "o2", "c1"), ("A", "o3", "c1"))
    registration.move_pattern("customer", "resume")
    send(("B", "o4", "c1"), ("A", "o5", "c1"), ("B", "o6", "c1"))
    assert alerts(stores) == [("customer", 1, "c1", "customer", ["e5"], ["e6"])]


@pytest.mark.redis
@pytest.mark.parametrize(("start", "old"), [("fresh", []), ("migrate", [("p", 1, "c1", "customer", ["e1"], ["e3"])])])
def test_the_next_version_starts_fresh_or_migrates(registration, send, stores, start, old):
    register_pattern(registration, "shop", "PATTERN p EVENT SEQ(A a, B b) WITHIN 1 h WHERE [customer]")
    send(("A", "o1", "c1"))
    register_pattern(
        registration, "shop", "PATTERN p EVENT SEQ(A a, B b, C c) WITHIN 1 h WHERE [customer]", start=start
    )
    send(("A", "o2", "c1"), ("B", "o3", "c1"), ("C", "o4", "c1"))
    assert alerts(stores) == [*old, ("p", 2, "c1", "customer", ["e2"], ["e3"], ["e4"])]
