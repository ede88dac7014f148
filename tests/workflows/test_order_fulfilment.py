"""The order workflow and its workload."""

from collections import Counter

import pytest

from streams import Event
from workflows import (
    InvalidWorkflow,
    OrderSettings,
    OrderWorkload,
    SimulationSettings,
    activity_names,
    generate_events,
    order_fulfilment,
)


def generate(orders: OrderSettings, traces: int = 2_000, concurrent: int = 100) -> list[Event]:
    """Events of some orders."""
    stream = SimulationSettings(traces=traces, concurrent=concurrent, key_prefix="order-")
    return list(generate_events(OrderWorkload(orders=orders, stream=stream), seed=11))


def words(events: list[Event]) -> list[list[str]]:
    """The event types of each order."""
    by_key: dict[str, list[str]] = {}
    for event in events:
        by_key.setdefault(event.key, []).append(event.type)
    return list(by_key.values())


def test_it_has_21_activities_in_the_order_of_the_drawing() -> None:
    names = activity_names(order_fulfilment())
    assert len(names) == 21
    assert names[:4] == ("ReceiveOrder", "CheckCredit", "RejectOrder", "CheckInventory")
    assert names[-2:] == ("CancelOrder", "FinishOrder")


def test_every_order_that_is_not_rejected_has_20_events() -> None:
    for word in words(generate(OrderSettings(reject=0.2, cancel=0.3))):
        if "RejectOrder" in word:
            assert word == ["ReceiveOrder", "CheckCredit", "RejectOrder"]
        else:
            assert len(word) == 20
            assert word.count("GenerateQuote") == 3
            assert word[:3] == ["ReceiveOrder", "CheckCredit", "CheckInventory"]
            assert word[12] == "CollectGoods"
            assert word[-1] in ("CancelOrder", "FinishOrder")


def test_shares_follow_the_settings() -> None:
    traces = words(generate(OrderSettings(local=0.9, reject=0.2, cancel=0.3)))
    counts = Counter(name for word in traces for name in word)
    accepted = len(traces) - counts["RejectOrder"]
    assert counts["RejectOrder"] / len(traces) == pytest.approx(0.2, abs=0.03)
    assert counts["UseLocalStock"] / accepted == pytest.approx(0.9, abs=0.03)
    assert counts["UseLocalStock"] + counts["UseRemoteStock"] == accepted
    assert counts["CancelOrder"] / accepted == pytest.approx(0.3, abs=0.03)


def test_prices_fail_as_often_as_asked_event_by_event() -> None:
    events = generate(OrderSettings(quote_fail=0.8, invoice_fail=0.1, reject=0.0))
    quotes = [event.data for event in events if event.type == "GenerateQuote"]
    invoices = [event.data for event in events if event.type == "GenerateInvoice"]
    assert sum(data["totalPrice"] <= 200 for data in quotes) / len(quotes) == pytest.approx(0.8, abs=0.02)
    assert sum(data["price"] <= 200 for data in invoices) / len(invoices) == pytest.approx(0.1, abs=0.02)
    assert all(data["price"] == data["totalPrice"] for data in quotes)
    assert all(data["price"] == data["amount"] for data in invoices)


def test_every_event_has_three_integers_and_two_texts_of_the_given_domains() -> None:
    events = generate(OrderSettings(integer_domain=5, text_domain=2), traces=200)
    for name in ("quantity", "weight", "priority"):
        assert {event.data[name] for event in events} == {1, 2, 3, 4, 5}
    for name in ("customer", "region"):
        assert {event.data[name] for event in events} == {f"{name}-1", f"{name}-2"}
    plain = next(event for event in events if event.type == "ReceiveOrder")
    assert set(plain.data) == {"quantity", "weight", "priority", "customer", "region"}


def test_an_open_loop_generates_three_quotes_on_average() -> None:
    counts = [word.count("GenerateQuote") for word in words(generate(OrderSettings(quotes=None, reject=0.0)))]
    assert min(counts) == 1
    assert max(counts) > 3
    assert sum(counts) / len(counts) == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize(("local", "peak"), [(0.0, 1_688), (0.5, 1_309), (0.9, 999)])
def test_a_matcher_without_constraints_holds_what_the_specification_reports(local: float, peak: int) -> None:
    """Q1 holds CheckInventory and UseRemoteStock until the order ends; 1,000 orders run at a time."""
    settings = OrderSettings(local=local, reject=0.0, cancel=0.0, invoice_fail=0.0)
    held = finished = highest = 0
    traces = 3_000
    remote: set[str] = set()
    for event in generate(settings, traces=traces, concurrent=1_000):
        if event.type == "UseRemoteStock":
            remote.add(event.key)
        held += event.type in ("CheckInventory", "UseRemoteStock")
        if event.type == "FinishOrder":
            held -= 1 + (event.key in remote)
            finished += 1
        if 1_000 <= finished <= traces - 1_000:
            highest = max(highest, held)
    assert highest == pytest.approx(peak, rel=0.04)


@pytest.mark.parametrize("field", ["local", "reject", "cancel", "quote_fail", "invoice_fail"])
def test_probabilities_outside_0_to_1_are_refused(field: str) -> None:
    with pytest.raises(InvalidWorkflow, match=f"{field} must lie between 0 and 1"):
        OrderSettings(**{field: 1.01})  # type: ignore[arg-type]


def test_a_workflow_without_quotes_is_refused() -> None:
    with pytest.raises(InvalidWorkflow, match="at least once, got 0"):
        order_fulfilment(OrderSettings(quotes=0))


def test_the_default_workload_is_the_same_every_time() -> None:
    first = list(generate_events(OrderWorkload(), seed=1))
    assert first == list(generate_events(OrderWorkload(), seed=1))
    assert len({event.key for event in first}) == 2_000
    assert first[0].key.startswith("order-")
