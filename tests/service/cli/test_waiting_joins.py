"""Joins with ``wait: auto`` over files and in a project, without a service."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from service.projects import LocalProject, read_project
from streams import Event, EventBatch, render_plain

PROJECT = """
{kind: stream, name: orders, lateness: 1}
---
{kind: stream, name: payments}
---
kind: join
name: paid
inputs:
  - {stream: orders, as: o}
  - {stream: payments, as: p, key: data.order}
outer: [p]
wait: auto
return: {order: id(o), payment: id(p), why: decided_by(p)}
"""


def events(seed: int, stream: str, lost: int = 0) -> list[Event]:
    """Events by time; their numbers rise, and come up to 40 places too late."""
    chance = random.Random(seed)
    numbers = sorted((n for n in range(3_000) if not lost or n % lost), key=lambda n: n + chance.uniform(0, 40))
    return [
        Event(
            id=f"{stream}{n}",
            type="T",
            time_us=place * 1_000,
            key=str(n) if stream == "orders" else f"x{n % 9}",
            data={"order": n},
        )
        for place, n in enumerate(numbers)
    ]


MADE = {"orders": events(1, "orders"), "payments": events(2, "payments", lost=50)}


@pytest.fixture
def project(tmp_path: Path) -> LocalProject:
    (tmp_path / "p.yaml").write_text(PROJECT)
    return LocalProject.of(read_project(tmp_path), tmp_path)


def fed_in_parts(project: LocalProject, streams: Mapping[str, list[Event]], step: int) -> dict[str, Any]:
    """What is found where the streams take turns."""
    run = project.fed({})
    for at in range(0, 3_000, step):
        for stream, some in streams.items():
            run.feed(stream, EventBatch.from_events(some[at : at + step]))
    return run.results(is_open=False)


def test_what_a_run_finds_does_not_depend_on_how_events_come(project: LocalProject) -> None:
    whole = project.run({stream: EventBatch.from_events(some) for stream, some in MADE.items()})
    found = whole["events"]
    assert sum(one["data"]["why"] is None for one in found) == 2_940
    absent = [one for one in found if one["data"]["why"] == "finished"]
    assert len(absent) > 30, "and the newest at the end of the input"
    assert {one["data"]["why"] for one in found} == {None, "finished", "end_of_input"}
    assert whole["dead_letters"] == []
    backwards = dict(reversed(MADE.items()))
    for streams, step in ((backwards, 3_000), (MADE, 700), (backwards, 333)):
        assert fed_in_parts(project, streams, step)["events"] == found


def test_a_run_prints_what_it_measured(project: LocalProject, tmp_path: Path, call: Any) -> None:
    files = {stream: tmp_path / f"{stream}.jsonl" for stream in MADE}
    for stream, path in files.items():
        path.write_bytes(b"\n".join(orjson.dumps(render_plain(event)) for event in MADE[stream]))
    arguments = ["run", str(tmp_path)]
    for stream, path in files.items():
        arguments += ["--events", f"{stream}={path}"]
    status, out, _ = call(*arguments, "--output", "json")
    found = orjson.loads(out)["stats"]["waiting"]["paid"]
    assert (status, sorted(found)) == (0, ["o", "p"])
    assert (found["o"]["arrived"], found["p"]["arrived"], found["o"]["late"]) == (3_000, 2_940, 0)
    assert 20 < found["o"]["disorder"] < 60
    assert 1_400 < found["o"]["closing_key"] < 2_000, "a second of events waits for older ones"
    assert 2_400 < found["p"]["closing_key"] < 3_000
    said = f"disorder {found['o']['disorder']}, closing key {found['o']['closing_key']}, 0 late events"
    assert f"waiting  paid  o: {said}" in call(*arguments)[1].splitlines()


def test_a_backtest_measures_what_a_run_measures(tmp_path: Path, call: Any) -> None:
    (tmp_path / "p.yaml").write_text(PROJECT.replace("lateness: 1}", "lateness: auto}"))
    words = [str(tmp_path)]
    for stream, some in MADE.items():
        path = tmp_path / f"{stream}.jsonl"
        path.write_bytes(b"\n".join(orjson.dumps(render_plain(event)) for event in some))
        words += ["--events", f"{stream}={path}"]
    ran = orjson.loads(call("run", *words, "--output", "json")[1])["stats"]
    status, out, err = call("backtest", "--project", *words, "--json")
    assert status == 0, err
    found = orjson.loads(out)["stats"]
    assert (found["lateness"], found["waiting"]) == (ran["lateness"], ran["waiting"])
    assert found["lateness"]["orders"]["changes"] == 1
    assert found["waiting"]["paid"]["p"]["closing_key"] > 2_400


def test_a_measurement_that_is_not_known_yet_is_said(project: LocalProject, tmp_path: Path, call: Any) -> None:
    arguments = ["run", str(tmp_path)]
    for stream, some in MADE.items():
        path = tmp_path / f"{stream}.jsonl"
        path.write_bytes(b"\n".join(orjson.dumps(render_plain(event)) for event in some[:3]))
        arguments += ["--events", f"{stream}={path}"]
    said = [line for line in call(*arguments)[1].splitlines() if line.startswith("waiting  paid")]
    assert len(said) == 2
    assert all("closing key unknown" in line and "None" not in line for line in said)


@pytest.mark.parametrize("keys", ["", ", keys: {order: data.ordr}"])
def test_a_path_that_no_event_has_is_named(tmp_path: Path, call: Any, keys: str) -> None:
    (tmp_path / "p.yaml").write_text(
        PROJECT.replace("data.order", "data.ordr").replace("payments}", f"payments{keys}}}")
    )
    arguments = ["run", str(tmp_path)]
    for stream, some in MADE.items():
        path = tmp_path / f"{stream}.jsonl"
        path.write_bytes(b"\n".join(orjson.dumps(render_plain(event)) for event in some[:3]))
        arguments += ["--events", f"{stream}={path}"]
    status, out, err = call(*arguments)
    assert status == 0, err
    assert "waiting  paid  p: no event has a whole number as key" in out.splitlines()
    assert "dead letters: 3 key-not-whole (event 'payments" in err
    assert "of type 'T' has no usable key at data.ordr; the join 'paid' has wait: auto" in err


def test_keys_that_are_no_numbers_are_shown(project: LocalProject) -> None:
    odd = Event(id="odd", type="T", time_us=5, key="a7", data={})
    found = project.run({"orders": EventBatch.from_events([odd])})
    (letter,) = found["dead_letters"]
    assert (letter["stream"], letter["pattern"], letter["key"]) == ("orders", "paid", "a7")
    assert "have to be whole numbers" in letter["reason"]


def test_a_project_says_what_wait_may_be(tmp_path: Path, call: Any) -> None:
    (tmp_path / "p.yaml").write_text(PROJECT.replace("wait: auto", "wait: 5 s"))
    (tmp_path / "orders.jsonl").write_bytes(orjson.dumps({"type": "T", "time": 1, "key": "1"}))
    status, _, err = call("run", str(tmp_path), "--events", f"orders={tmp_path / 'orders.jsonl'}")
    assert status != 0
    assert 'wait: one of none, auto; got "5 s"' in err
