"""Tables that change in mid-stream while tasks are killed: each event reads the rows of its place."""

import random

import pytest

from service import Registration, Stores
from service.processes import timekeeper
from service.registering.tables import TableLibrary, TableUpload
from streams import StreamDeclaration
from streams.tables import TableDeclaration
from tests.builders.registering import register_pattern
from tests.builders.service import HandClock, settings_for
from tests.service.test_continuous import Continuous, come_to_rest, post

pytestmark = [pytest.mark.redis, pytest.mark.slow]

CUSTOMERS = ("a", "b", "c")
PATTERNS = {
    "over": "PATTERN over EVENT Order o [sum > lookup(limits, customer).most]",
    "row": "PATTERN row FOR EACH ROW OF limits t EVENT SEQ(Order p [customer = t.customer], Order o [sum > t.most])",
}


@pytest.fixture
def settings(server_url, tmp_path):
    return settings_for(server_url, data_dir=tmp_path / "data", shards=2, runtime="continuous")


class Limits:
    """The table, and its rows as a dictionary."""

    def __init__(self, stores, settings, folder):
        self.library, self.path, self.rows = TableLibrary(stores, settings, HandClock()), folder / "limits.csv", {}

    def change(self, chance):
        """Upload a version, or change one row."""
        customer, most = chance.choice(CUSTOMERS), chance.randrange(4)
        if self.rows and chance.random() < 0.5:
            self.rows[customer] = most
            self.library.change_row("limits", [customer], {"customer": customer, "most": most})
            return
        self.rows = {name: chance.randrange(4) for name in CUSTOMERS if chance.random() < 0.8} or {customer: most}
        lines = ["customer,most", *(f"{name},{value}" for name, value in self.rows.items())]
        self.path.write_text("\n".join(lines) + "\n")
        declaration = TableDeclaration(key=("customer",), types={"most": "integer"})
        self.library.put(TableUpload(name="limits", path=self.path, format="csv", declaration=declaration))


@pytest.mark.parametrize("seed", range(2))
def test_each_event_reads_the_rows_of_its_place_where_tasks_are_killed(
    client, server_url, settings, tmp_path, monkeypatch, seed
):
    monkeypatch.setattr(timekeeper, "_QUIET_US", 0)
    chance, stores = random.Random(seed), Stores(client, server_url, settings)
    registration, limits = Registration(stores, settings, HandClock()), Limits(stores, settings, tmp_path)
    registration.declare_stream(StreamDeclaration(name="orders", key="data.order"))
    limits.change(chance)
    for text in PATTERNS.values():
        register_pattern(registration, "orders", text)
    job = Continuous(settings, stores, tasks=2, kills=0.2)
    over: list[str] = []
    pairs: list[tuple[str, str, str]] = []
    begun: dict[tuple[str, str], list[str]] = {}
    try:
        for number in range(60):
            if chance.random() < 0.3:
                before = dict(limits.rows)
                limits.change(chance)
                begun = {
                    place: ids for place, ids in begun.items() if limits.rows.get(place[1]) == before.get(place[1])
                }
            order, customer, total = f"o{chance.randrange(3)}", chance.choice(CUSTOMERS), chance.randrange(6)
            data = {"order": order, "customer": customer, "sum": total}
            event_id = str(number)
            event = {"id": event_id, "type": "Order", "time": number * 1_000_000, "data": data}
            over += [event_id] if total > limits.rows.get(customer, 9) else []
            for name, most in limits.rows.items():
                pairs += [(first, event_id, name) for first in begun.get((order, name), []) if total > most]
            if customer in limits.rows:
                begun.setdefault((order, customer), []).append(event_id)
            post(stores, settings, [[event]], [job], chance)
        come_to_rest(job, stores, chance)
    finally:
        job.end()
    assert over
    assert pairs
    alerts = stores.alerts.page(limit=10_000).items
    bound = {name: [one["bindings"] for one in alerts if one["pattern"] == name] for name in PATTERNS}
    rows = [one["row"]["customer"] for one in alerts if one["pattern"] == "row"]
    assert sorted(one["o"][0] for one in bound["over"]) == sorted(over)
    assert sorted((one["p"][0], one["o"][0], row) for one, row in zip(bound["row"], rows, strict=True)) == sorted(pairs)
