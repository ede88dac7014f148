"""The workload of the experiments is the one that section 8 describes."""

import numpy as np
import pytest

from benchmarks.ccep.knowledge import LanguageOracle
from benchmarks.ccep.queries import cell_of
from benchmarks.ccep.stream import TYPES, order_stream
from nfa import Matcher
from streams import key_hash
from workflows import OrderSettings

MIXED = OrderSettings(reject=0.1, cancel=0.2, local=0.3, quote_fail=0.6, invoice_fail=0.25)


@pytest.fixture(scope="module")
def stream():
    return order_stream(MIXED, orders=3_000, concurrent=100, seed=5)


def words_of(stream):
    words: list[list[str]] = [[] for _ in range(int(stream.orders.max()) + 1)]
    for order, code in zip(stream.orders.tolist(), stream.types.tolist(), strict=True):
        words[order].append(TYPES[code])
    return [tuple(word) for word in words]


def test_every_order_is_a_word_of_the_workflow(stream):
    words = words_of(stream)
    assert set(words) <= LanguageOracle().start
    assert len(words) == 3_000


def test_accepted_orders_have_twenty_events():
    accepted = order_stream(OrderSettings(reject=0.0), orders=50, concurrent=7, seed=1)
    assert {len(word) for word in words_of(accepted)} == {20}


@pytest.mark.parametrize(
    ("name", "share"), [("RejectOrder", 0.1), ("UseLocalStock", 0.9 * 0.3), ("CancelOrder", 0.9 * 0.2)]
)
def test_choices_come_as_often_as_set(stream, name, share):
    orders = int(stream.orders.max()) + 1
    assert np.count_nonzero(stream.types == TYPES.index(name)) / orders == pytest.approx(share, abs=0.03)


def test_prices_fail_by_event_as_often_as_set(stream):
    price = stream.integers["price"]
    quotes, invoices = (stream.types == TYPES.index(name) for name in ("GenerateQuote", "GenerateInvoice"))
    assert np.mean(price[quotes] <= 200) == pytest.approx(0.6, abs=0.03)
    assert np.mean(price[invoices] <= 200) == pytest.approx(0.25, abs=0.03)
    failed = np.bincount(stream.orders[quotes], price[quotes] <= 200)
    accepted = np.bincount(stream.orders[quotes]) == 3
    share = np.mean(failed[: len(accepted)][accepted] == 3)
    assert share == pytest.approx(0.6**3, abs=0.03), "the quotes of an order do not fail together"


def test_branches_of_the_and_are_picked_evenly_while_both_are_unfinished():
    whole = order_stream(OrderSettings(reject=0.0), orders=4_000, concurrent=10, seed=2)
    fourth = whole.types[whole.places == 3]
    assert set(np.unique(fourth)) == {TYPES.index("AllocateStock"), TYPES.index("OrderFromSupplier")}
    assert np.mean(fourth == TYPES.index("AllocateStock")) == pytest.approx(0.5, abs=0.03)


def test_as_many_orders_are_open_as_set_and_each_is_as_likely(stream):
    is_first = stream.places == 0
    still_open = np.cumsum(is_first) - np.cumsum(stream.ends)
    begun = int(np.flatnonzero(np.cumsum(is_first) == 3_000)[0])
    early = still_open[:begun]
    assert early.max() <= 100
    assert np.all(np.diff(stream.times_us) > 0)
    counts = np.bincount(stream.slots[:begun], minlength=100)
    assert counts.min() > 0.75 * counts.mean()
    assert counts.max() < 1.25 * counts.mean()


def test_peaks_count_once_as_many_orders_have_finished_as_are_open(stream):
    assert stream.ends[: stream.settled + 1].sum() == 100
    assert stream.ends[stream.settled]


def test_batch_carries_the_same_events_with_five_attributes(stream):
    batch = stream.batch()
    events = batch.slice(0, 500).to_events()
    assert [event.type for event in events] == [TYPES[code] for code in stream.types[:500]]
    assert all(set(event.data) == {"quantity", "priority", "price", "customer", "region"} for event in events)
    assert [event.data["price"] for event in events] == stream.integers["price"][:500].tolist()
    assert batch.key_hashes[:500].tolist() == [key_hash(event.key) for event in events]
    assert events[0].id == f"{events[0].key}:1"
    columns = batch.attributes["customer",].to_pylist()[:500]
    assert columns == [event.data["customer"] for event in events]


def test_columns_and_json_give_the_same_matches():
    cell = cell_of("Q2 late", (50,))
    batch = order_stream(cell.orders, orders=150, concurrent=20, seed=3).batch()
    found = []
    for events in (batch, type(batch)(batch.columns)):
        matcher = Matcher()
        matcher.add_pattern(cell.query.text)
        found.append(sorted(str(match.bindings) for match in matcher.process(events).matches()))
    assert found[0] == found[1]
    assert found[0]


def test_same_seed_same_stream():
    first, again, other = (order_stream(MIXED, orders=40, concurrent=8, seed=seed) for seed in (1, 1, 2))
    assert first.batch().to_bytes() == again.batch().to_bytes() != other.batch().to_bytes()


def test_other_loops_are_refused():
    with pytest.raises(ValueError, match="3 quotes"):
        order_stream(OrderSettings(quotes=2), orders=1, concurrent=1, seed=1)
