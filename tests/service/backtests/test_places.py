"""Tables and calendars in a backtest over the log: each event reads them as they were at its place, as it did live."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from service.backtests import BacktestDraft, BacktestLibrary, PatternChoice
from service.backtests.run import BacktestRun
from service.registering.registration import Registration
from service.registering.tables import CalendarLibrary, TableLibrary, TableUpload
from service.stores import Submission
from shards import ShardState, StoredEntry
from streams import Event, EventBatch, StreamDeclaration, SystemClock, Tick, encode_control
from streams.tables import TableDeclaration, Tables
from tests.builders.registering import register_pattern

pytestmark = pytest.mark.redis

TEXTS = {
    "lookup": "PATTERN p EVENT A a [v > lookup(limits, who).most] RETURN lookup(limits, a.who).most AS most",
    "rows": """PATTERN p FOR EACH ROW OF limits t
EVENT SEQ(A a [who = t.who AND v > t.most], A b [who = t.who AND v > a.v]) RETURN t.most AS most""",
    "missing": """PATTERN p FOR EACH ROW OF limits t
EVENT SEQ(A a [who = t.who AND v > t.most], NOT A b [who = t.who]) WITHIN 5 s""",
    "calendar": "PATTERN p EVENT A a [v > 2] RETURN add_business_time(time(a), 1 h, office) AS due",
}
START_US = 1_767_600_000_000_000  # a Monday
LAST = "9999999999999-0"
WHO = ("x", "y", "z")


class Log:
    """A log with events and changes of a table and of a calendar, in random order."""

    def __init__(self, stores: Any, settings: Any, folder: Path, seed: int) -> None:
        self.stores, self.folder, self.rng, clock = stores, folder, Random(seed), SystemClock()
        self.tables = TableLibrary(stores, settings, clock)
        self.calendars = CalendarLibrary(self.tables)
        self.events = 0

    def upload(self) -> None:
        rows = {who: self.rng.randrange(4) for who in WHO if self.rng.random() < 0.7}
        path = self.folder / "limits.csv"
        path.write_text("\n".join(["who,most", *(f"{who},{most}" for who, most in rows.items()), ""]))
        declaration = TableDeclaration(key=("who",), types={"most": "integer"})
        self.tables.put(TableUpload(name="limits", path=path, format="csv", declaration=declaration))

    def row(self) -> None:
        most = self.rng.choice([None, 0, 1, 2])
        self.tables.change_row("limits", [self.rng.choice(WHO)], None if most is None else {"most": most})

    def calendar(self) -> None:
        hours = {"mon-sun": f"0{self.rng.randrange(8)}:00-20:00"}
        self.calendars.put("office", {"zone": "Europe/Berlin", "years": [2026, 2026], "hours": hours})

    def post(self) -> None:
        made = []
        for _ in range(self.rng.randrange(1, 6)):
            self.events += 1
            data = {"who": self.rng.choice(WHO), "v": self.rng.randrange(6)}
            time_us = START_US + self.events * 1_000_000
            key = f"k{self.rng.randrange(5)}"
            made.append(Event(id=f"e{self.events}", type="A", time_us=time_us, key=key, data=data))
        token = f"t{self.events}"
        self.stores.log.append_events(
            Submission(stream="orders", batch=EventBatch.from_events(made), dead_letters=(), answer={},
                       fingerprint=token, token=token)
        )  # fmt: skip

    def live(self) -> list[tuple[str, ...]]:
        """The alerts of the shards, each over its own log."""
        found = []
        for shard in range(self.stores.log.layout.read().shards):
            state = ShardState(shard)
            state.use_tables(Tables(self.stores.tables.files))
            rows = state.apply(self.stores.log.read_range(shard))
            tick = Tick(time_us=START_US + self.events * 1_000_000, cause="events")
            end = StoredEntry(position=LAST, kind=tick.KIND.value, stream="orders", body=encode_control(tick))
            rows += state.apply([end])
            found += [orjson.loads(row.body) for row in rows if row.kind == "alert"]
        return shown(found)


def shown(alerts: Any) -> list[tuple[str, ...]]:
    return sorted((str(one.get("row")), str(one["bindings"]), str(one["returns"])) for one in alerts)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", TEXTS)
def test_a_backtest_over_the_log_finds_what_was_found_live(
    stores: Any, settings: Any, tmp_path: Path, name: str, seed: int
) -> None:
    clock, log = SystemClock(), Log(stores, settings, tmp_path, seed)
    registration = Registration(stores, settings, clock)
    registration.declare_stream(StreamDeclaration(name="orders"))
    log.upload()
    log.calendar()
    register_pattern(registration, "orders", TEXTS[name])
    for _ in range(60):
        log.rng.choice([log.post, log.post, log.post, log.upload, log.row, log.calendar])()
    library = BacktestLibrary(stores, settings, clock)
    asked = library.ask(BacktestDraft(stream="orders", pattern=PatternChoice(name="p")))
    log.rng.choice([log.upload, log.row])()
    stores.backtests.advance(asked.id, ("queued",), status="running")
    BacktestRun(stores=stores, settings=settings, clock=clock).run(asked.id)
    backtest, _ = library.get(asked.id)
    assert backtest.status == "done", backtest.error
    found = shown(library.alerts(asked.id, limit=10_000).items)
    expected = log.live()
    assert len(expected) > 5
    assert found == expected
