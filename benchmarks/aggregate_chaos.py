"""Random kills while the three aggregates of docs/aggregates.md run: no derived event is lost or duplicated.

The kills are those of ``pipeline_chaos``. The aggregates count failed logins by address, refunds by shop compared with
a week before, and tickets by tenant and region. Some have groups in the shard of their key, others are re-keyed; some
have a condition. In the end, the service must have each derived event of ``forestall run`` over the same events exactly
once. After each kill, and in the end, a client asks for the tickets of one tenant in the last twenty minutes. The
answer must include all events that were posted before.

    scripts/bench aggregate_chaos --kills=12 --events=12000
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from typing import Any

from benchmarks.pipeline_chaos import Case, Outcome, Plan, await_drained, main
from service.client import Client
from service.processes.temporary import TemporaryService
from service.projects import LocalProject, apply_plan, plan_project, read_project
from service.sending import send_events
from streams import Event, EventBatch, ForestallError, parse_time

_DOCUMENT = Path(__file__).parent.parent / "docs" / "aggregates.md"
_STREAMS, _AGGREGATES = ("logins", "sales", "tickets"), ("failed_logins", "refunds", "tickets_per_region")
_ASKED = """
---
kind: aggregate
name: opened_tickets
of: tickets
where: "type = 'Opened'"
by: [id]
values: {n: count()}
window: 1 h
having: n > 1000000
ask: {by: [tenant, region]}
"""
_ASKED_US = 20 * 60_000_000
_TENANTS = 3
DERIVED, ANSWERS = "derived events", "answers"
_START_US = 1_577_836_800_000_000  # 2020, because all times must be in the past
_FAR_US = 4 * 365 * 86_400_000_000
_STEPS_US = {"logins": 40_000_000, "sales": 3_600_000_000, "tickets": 30_000_000}
_BEGINS = 64  # enough keys that each of a few shards has some
_PATIENCE_S, _QUIET_S = 120.0, 3.0


class Sentences(Case):
    """The case of the three aggregates: logins, sales and tickets."""

    def __init__(self, folder: Path) -> None:
        found = re.search(
            r"watch/aggregates.yaml <<'EOF'\n(.*?)EOF\n", _DOCUMENT.read_text(encoding="utf-8"), re.DOTALL
        )
        assert found is not None, _DOCUMENT
        folder.mkdir(exist_ok=True)
        (folder / "project.yaml").write_text(found[1] + _ASKED, encoding="utf-8")
        self._folder, self._streams = folder, dict[str, str]()

    def events(self, plan: Plan) -> list[Event]:
        """Return the events of the three streams in turn.

        The last event of each stream comes after all windows have ended.
        """
        chance = random.Random(plan.seed)
        found = [_event(number, chance) for number in range(plan.events)]
        found += [(one, _of_time(f"end-{one}-{n}", n, _FAR_US)) for one in _STREAMS for n in range(_BEGINS)]
        self._streams = {event.id: stream for stream, event in found}
        return [event for _, event in found]

    def stream_of(self, event: Event) -> str:
        """Return the stream of an event."""
        return self._streams[event.id]

    def expected(self, events: Sequence[Event], request: int) -> Outcome:
        """Return the derived events of ``forestall run``."""
        given = {stream: [*_begins(stream), *self._of(stream, events)] for stream in _STREAMS}
        local = LocalProject.of(read_project(self._folder), self._folder)
        results = local.run({stream: EventBatch.from_events(some) for stream, some in given.items()})
        texts = [_text(one["stream"], one) for one in results["events"] if not _is_last(one)]
        letters = [f"expected: {letter['reason']}" for letter in results["dead_letters"]]
        return Outcome(others={DERIVED: (texts, []), ANSWERS: ([], [])}, dead_letters=letters)

    def _of(self, stream: str, events: Sequence[Event]) -> list[Event]:
        return [event for event in events if self.stream_of(event) == stream]

    def declare(self, service: TemporaryService) -> None:
        """Apply the project, and start the event time of all streams in every shard."""
        client: Client = service.client
        documents = read_project(self._folder)
        apply_plan(client, plan_project(client, documents, self._folder, is_pruned=False), lambda change: None)
        before = client.get("/pipeline")["backlog"]["appended_volume"]["events"]
        for stream in _STREAMS:
            send_events(client, stream, _begins(stream), f"begin-{stream}")
        await_drained(service, before + len(_STREAMS) * _BEGINS, _PATIENCE_S)

    def ask(self, service: TemporaryService, posted: Mapping[str, Sequence[Event]], outcome: Outcome) -> None:
        """Ask for the newest tickets of a tenant by region, and compare with the counts of the posted tickets."""
        expected, found = outcome.others[ANSWERS]
        number, tickets = len(expected), posted.get("tickets", _begins("tickets"))
        tenant, newest_us = f"T{number % _TENANTS}", max(event.time_us for event in tickets)
        end_us, counts = _answer(service.client, tenant)
        if end_us is not None:
            found.append(f"{number} {end_us} {sorted(counts.items())}")
        end_us = min(
            max(newest_us, end_us or 0), newest_us + 1
        )  # a tick of a quiet stream is 1 us after its newest event
        expected.append(f"{number} {end_us} {sorted(_counts(tickets, tenant, end_us).items())}")

    def look(self, service: TemporaryService, outcome: Outcome, patience_s: float) -> None:
        """Wait until all expected results have arrived, wait a little longer, and collect the results."""
        deadline = time.monotonic() + patience_s
        expected, found = outcome.others[DERIVED][0], self._found(service)
        while time.monotonic() < deadline and len(found) < len(expected):
            Flag().wait(0.5)
            found = self._found(service)
        Flag().wait(_QUIET_S)
        outcome.others[DERIVED] = expected, self._found(service)
        for stream in (*_STREAMS, *_AGGREGATES):
            outcome.dead_letters += [one["reason"] for one in service.client.pages("/dead-letters", stream=stream)]

    @staticmethod
    def _found(service: TemporaryService) -> list[str]:
        derived = service.client.pages("/derived-events")
        return [_text(one["into"], one) for one in derived if one["into"] in _AGGREGATES and not _is_last(one)]


def _answer(client: Client, tenant: str) -> tuple[int | None, Mapping[str, int]]:
    """Return the time of an answer, and the tickets by region. If no question is answered in time, the time is None."""
    question = {"by": ["region"], "where": {"tenant": tenant}, "window": "20 min"}
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(ForestallError):  # killed processes restart
            answer = client.post("/aggregates/opened_tickets/ask", question)
            return parse_time(answer["time"]), {group["region"]: group["n"] for group in answer["groups"]}
    return None, {}


def _counts(tickets: Sequence[Event], tenant: str, end_us: int) -> Mapping[str, int]:
    """Return the opened tickets of a tenant, by region, in the window that ends at ``end_us``."""
    opened = [event for event in tickets if event.type == "Opened" and end_us - event.time_us < _ASKED_US]
    return Counter(event.data["region"] for event in opened if event.data["tenant"] == tenant)


def _event(number: int, chance: random.Random) -> tuple[str, Event]:
    stream = _STREAMS[number % len(_STREAMS)]
    at_us = _START_US + number // len(_STREAMS) * _STEPS_US[stream] + chance.randrange(_STEPS_US[stream])
    if stream == "logins":
        user = f"u{chance.randrange(30)}"
        kind, key = chance.choice(["LoginFailed", "LoginFailed", "Login"]), user
        data: dict[str, Any] = {"user": user, "address": f"10.0.0.{chance.choice([1, 1, 1, 2, 2, 3, 4])}"}
    elif stream == "sales":
        kind, key = chance.choice(["Refund", "Sale"]), f"s{chance.randrange(40)}"
        data = {"shop": key, "amount": chance.randrange(1, 9_999) / 100}
    else:
        kind, key = chance.choice(["Opened", "Closed"]), f"t{chance.randrange(500)}"
        data = {"id": key, "tenant": f"T{chance.randrange(_TENANTS)}", "region": chance.choice(["north", "south"])}
    return stream, Event(id=f"e{number}", type=kind, time_us=at_us, key=key, data=data)


def _of_time(identity: str, number: int, at_us: int) -> Event:
    """Return an event that only advances event time in the shard of its key."""
    key = f"k{number}"
    data = {"user": key, "shop": key, "id": key}
    return Event(id=identity, type="Time", time_us=_START_US + at_us, key=key, data=data)


def _begins(stream: str) -> list[Event]:
    return [_of_time(f"begin-{stream}-{number}", number, -3_600_000_000) for number in range(_BEGINS)]


def _is_last(event: Mapping[str, Any]) -> bool:
    """Return whether an event's window ends only because the finite input ends."""
    return str(event["time"]) >= "2023-12"


def _text(stream: str, event: Mapping[str, Any]) -> str:
    """Return a derived event as text, with all members."""
    return f"{stream} {event['id']} {event['type']} {event['time']} {event['key']} {sorted(event['data'].items())}"


if __name__ == "__main__":
    with TemporaryDirectory(prefix="forestall-aggregates-") as name:
        main(Sentences(Path(name)), __doc__)
