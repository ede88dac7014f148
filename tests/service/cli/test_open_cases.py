"""``forestall traces list``: open transactions as a table, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from service.cli.calling import Caller
from service.cli.traces import traces as command
from service.client import Call

TRACE: dict[str, Any] = {
    "key": "o-17",
    "since": "2026-01-01T09:00:00Z",
    "newest": "2026-01-01T09:20:00Z",
    "events": 2,
    "constraints_state": "kept",
    "patterns": [
        {"name": "idle", "furthest": None},
        {"name": "unpaid", "furthest": {"bound": [{"alias": "o"}, {"alias": "r"}], "waits_for": ["Pay p", "Cancel c"]}},
    ],
    "may_follow": {"possible_types": ["Pay"], "excluded_types": []},
}

SHOWN: dict[str, Any] = {
    "stream": "orders",
    "key": "o-17",
    "route": None,
    "is_open": True,
    "newest_events": [],
    "deviation": None,
    "following": [],
    "is_complete": True,
    "patterns": [
        {
            "name": "habit",
            "state": "other_key",
            "route": "customer",
            "route_keys": ["ann"],
            "matched": 0,
            "ending": None,
        },
        {"name": "region", "state": "other_key", "route": "region", "route_keys": [], "matched": 0, "ending": None},
        {"name": "p", "state": "waiting", "matched": 0, "ending": None, "broken": {"reason": "H e2 ended it"}},
    ],
}


class Answering(Caller):
    """A client that records its requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.trace, self.shown = TRACE, SHOWN

    def send(self, call: Call) -> dict[str, Any]:
        parameters = {name: value for name, value in call.query.items() if value is not None}
        self.asked.append((call.path, parameters))
        return (
            {"items": [self.trace], "open_count": 5, "matching_count": 3}
            if call.path == "/v1/traces"
            else {**self.shown, "route": parameters.get("by")}
        )


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Answering:
    answering = Answering()

    @contextmanager
    def calling(*_: object) -> Iterator[Answering]:
        yield answering

    monkeypatch.setattr("service.cli.calling.calling", calling)
    return answering


def test_a_table_says_how_far_patterns_are(service: Answering) -> None:
    printed = CliRunner().invoke(command, ["list", "orders", "--pattern", "unpaid", "--older-than", "2d"])
    assert printed.exit_code == 0, printed.output
    assert "unpaid has o r, waits for Pay p or Cancel c" in printed.output
    assert "idle" not in printed.output
    assert "2 more match; --limit shows more of them" in printed.output
    chosen = {"stream": "orders", "pattern": "unpaid", "state": "open", "older_than": "2d", "limit": 20}
    assert service.asked == [("/v1/traces", chosen)]


def test_json_is_one_transaction_per_line(service: Answering) -> None:
    printed = CliRunner().invoke(command, ["list", "orders", "--json", "--state", "matching"])
    assert [orjson.loads(line) for line in printed.output.splitlines()] == [TRACE]
    assert service.asked[0][1]["state"] == "matching"


def test_a_transaction_names_what_ended_patterns_and_where_those_of_further_keys_are(service: Answering) -> None:
    printed = CliRunner().invoke(command, ["show", "orders", "o-17"], env={"COLUMNS": "200"})
    assert "habit is matched by customer: forestall traces show orders ann --by customer" in printed.output
    assert "region is matched by region, which no event here has" in printed.output
    assert "p is waiting: H e2 ended it" in printed.output
    printed = CliRunner().invoke(command, ["show", "orders", "ann", "--by", "customer"])
    assert "customer o-17 of orders, open" in printed.output
    assert service.asked == [("/v1/traces/orders/o-17", {}), ("/v1/traces/orders/ann", {"by": "customer"})]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("alive", "p has a partial match, matched once; an earlier partial match was terminated early: H ends it"),
        ("ended", "p is ended, matched once; no further match is possible: H ends it"),
        ("registered_later", "p version 2 was registered after this transaction's last event"),
        ("was_paused", "p was paused during the whole transaction"),
    ],
)
def test_an_early_termination_says_what_it_terminated(service: Answering, state: str, words: str) -> None:
    pattern = {
        "name": "p",
        "version": 2,
        "state": state,
        "matched": 1,
        "ending": {"reason": "H ends it"},
        "broken": None,
    }
    service.shown = {**SHOWN, "patterns": [pattern]}
    printed = CliRunner().invoke(command, ["show", "orders", "o-17"], env={"COLUMNS": "200"})
    assert words in printed.output


@pytest.mark.parametrize(
    ("seen", "earlier", "words"),
    [
        (2, None, "p is closed, matched once; it saw 2 of the 5 events\n"),
        (5, 0, "p is closed, matched once; earlier versions matched nothing\n"),
        (4, 3, "p is closed, matched once; it saw 4 of the 5 events; earlier versions matched 3 times\n"),
    ],
)
def test_a_pattern_says_how_much_of_a_transaction_its_version_saw(
    service: Answering, seen: int, earlier: int | None, words: str
) -> None:
    pattern = {"name": "p", "version": 2, "state": "closed", "matched": 1, "ending": None}
    pattern |= {"seen_events": seen, "earlier_matched": earlier}
    service.shown = {**SHOWN, "patterns": [pattern], "total_events": 5}
    printed = CliRunner().invoke(command, ["show", "orders", "o-17"], env={"COLUMNS": "200"})
    assert words in printed.output


@pytest.mark.parametrize(("version", "is_said"), [(None, True), (1, False)])
def test_without_constraints_other_types_may_come_too(service: Answering, version: int | None, is_said: bool) -> None:
    following = [{"event_type": "End", "is_possible": True, "breaks": None, "ends": {}}]
    service.shown = {**SHOWN, "following": following, "constraints_version": version}
    printed = CliRunner().invoke(command, ["show", "orders", "o-17"], env={"COLUMNS": "200"})
    assert "- End\n" in printed.output
    assert ("any other type, as no constraints apply" in printed.output) == is_said


def test_what_is_left_out_is_counted(service: Answering) -> None:
    furthest: dict[str, Any] = {"bound": [{"alias": "o"}], "bound_events": 51, "waits_for": ["Pay p"]}
    furthest["more_waits_for"] = 2
    cut = {"patterns": [{"name": "unpaid", "furthest": furthest}], "more_patterns": 7}
    service.trace = {**TRACE, **cut, "may_follow": {**TRACE["may_follow"], "more_types": 3}}
    printed = CliRunner().invoke(command, ["list", "orders"], env={"COLUMNS": "300"})
    assert "unpaid has 51 events, the newest 1 of them o, waits for Pay p or 2 more steps; 7 more" in printed.output
    assert "Pay, 3 more types were not examined" in printed.output
    pattern = {**SHOWN["patterns"][0], "more_route_keys": 2}
    ended = {**SHOWN["patterns"][-1], "broken": None, "is_broken_examined": False}
    event = {"time": "2026-01-01T09:00:00Z", "type": "A", "id": "e"}
    service.shown = {
        **SHOWN,
        "patterns": [pattern, ended],
        "newest_events": [event],
        "total_events": 201,
        "more_types": 3,
    }
    printed = CliRunner().invoke(command, ["show", "orders", "o-17"], env={"COLUMNS": "300"})
    assert "--by customer and 2 more values" in printed.output
    assert "p is waiting; how its last partial match ended was not examined, as it sees more than 300" in printed.output
    assert "the newest 1 of 201 events are listed; 3 more types were not examined" in printed.output
