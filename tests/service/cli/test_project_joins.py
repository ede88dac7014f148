"""Joins of a project, over files and in its tests, without a service."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from service.errors import ProjectRefused
from service.projects import Change, Comparison, LocalProject, Plan, read_project
from service.projects.planning import Ownership, wanted_of
from service.projects.resources import StoredResource
from streams import Event, EventBatch, format_time

STREAMS = """
{kind: stream, name: orders}
---
{kind: stream, name: payments, key: data.order}
---"""
BASE = f"""{STREAMS}
kind: join
name: paid
inputs:
  - {{stream: orders, as: o, closed_by: unique}}
  - {{stream: payments, as: p, window: 2 s, closed_by: {{type: Last}}}}
window: 10 s
return: {{order: id(o), payment: id(p), amount: p.v}}
---
kind: join
name: totals
inputs:
  - {{stream: orders, as: o, closed_by: unique}}
  - {{stream: payments, as: p, window: 1 h, closed_by: {{type: Last}}}}
emit: on_close
outer: [p]
return: {{order: id(o), payments: count(p), sum: sum(p.v)}}
type: Total
"""
PAIRS = """
kind: join
name: pairs
inputs: [{stream: orders, as: o}, {stream: payments, as: p}]
window: 10 s
return: {order: id(o), payment: id(p)}
"""
CASES = """
kind: test
name: two orders
streams:
  orders: {a: O1, b: O20}
  payments: {a: "P2:5 P4:7 Last11:1", b: "P19:3 Last30:9"}
expect:
  events:
    - paid [a] paid2 order=O1 payment=P2 amount=5
    - paid [a] paid4 order=O1 payment=P4 amount=7
    - paid [b] paid20 order=O20 payment=P19 amount=3
    - totals [a] Total11 order=O1 payments=3 sum=13
    - totals [b] Total30 order=O20 payments=2 sum=12
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def project_of(folder: Path) -> LocalProject:
    return LocalProject.of(read_project(folder), folder)


def test_a_test_gives_events_of_several_streams(folder, call):
    (folder / "cases.yaml").write_text(CASES)
    status, out, err = call("test", str(folder))
    assert (status, "1 passed, 0 failed" in err) == (0, True), out


def events_of(stream: str, number: int) -> list[Event]:
    """Made-up events in the order of time, with few keys."""
    made = [(n, f"k{(n * 7 + number) % 5}") for n in range(60)]
    return [Event(id=f"{stream}{n}", type="E", time_us=n * 400_000 + number, key=key, data={"v": n}) for n, key in made]


def test_a_join_finds_the_pairs_of_one_key_in_their_windows(tmp_path):
    (tmp_path / "p.yaml").write_text("""
{kind: stream, name: a}
---
{kind: stream, name: b}
---
kind: join
name: pairs
inputs: [{stream: a, as: x, window: 3 s}, {stream: b, as: y, window: 5 s}]
return: {x: id(x), y: id(y)}
""")
    left, right = events_of("a", 1), events_of("b", 2)
    batches = {"a": EventBatch.from_events(left), "b": EventBatch.from_events(right)}
    found = project_of(tmp_path).run(batches)
    expected = {
        (x.id, y.id)
        for x in left
        for y in right
        if x.key == y.key and y.time_us - x.time_us < 3_000_000 and x.time_us - y.time_us < 5_000_000
    }
    pairs = [(one["data"]["x"], one["data"]["y"]) for one in found["events"]]
    assert len(pairs) == len(set(pairs)) == len(expected) > 20
    assert set(pairs) == expected
    assert {one["stream"] for one in found["events"]} == {"pairs"}


def test_run_prints_pairs_and_the_totals_of_keys_that_never_close(folder, call):
    lines: dict[str, list[dict[str, Any]]] = {
        "orders": [{"id": "o1", "type": "O", "time": "2026-01-01T00:00:00Z", "key": "a"}],
        "payments": [
            {"id": "p1", "type": "P", "time": "2026-01-01T00:00:01Z", "data": {"order": "a", "v": 5}},
            {"id": "p2", "type": "P", "time": "2026-01-01T00:30:00Z", "data": {"order": "a", "v": 6}},
        ],
    }
    options = []
    for stream, events in lines.items():
        path = folder / f"{stream}.jsonl"
        path.write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in events))
        options += ["--events", f"{stream}={path}"]
    status, out, err = call("run", str(folder), *options, "--output", "json")
    assert status == 0, err
    streams = orjson.loads(out)["streams"]
    assert [one["data"] for one in streams["paid"]] == [{"order": "o1", "payment": "p1", "amount": 5}]
    assert [one["data"] for one in streams["totals"]] == [{"order": "o1", "payments": 2, "sum": 11}]
    assert set(streams) == {"paid", "totals"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("stream: payments, as: p, window: 2 s", "stream: paymants, as: p, window: 2 s", "did you mean payments"),
        ("window: 10 s", "window: 10 parsecs", "write a duration"),
        ("amount: p.v", "amount: q.v", "no input is called q"),
        (
            ", closed_by: unique}\n  - {stream: payments, as: p, window: 2 s, closed_by: {type: Last}}\nwindow: 10 s",
            "}\n  - {stream: payments, as: p}",
            "nothing bounds",
        ),
        ("outer: [p]", "outer: [z]", "inputs that may be absent"),
        ("emit: on_close", "emit: sometimes", "emit"),
    ],
)
def test_what_cannot_be_joined_is_refused_with_its_place(folder, old, new, said):
    text = (folder / "base.yaml").read_text()
    assert old in text
    (folder / "base.yaml").write_text(text.replace(old, new))
    with pytest.raises(ProjectRefused, match=r"base\.yaml:\d+") as refusal:
        project_of(folder)
    assert said in str(refusal.value)


def test_a_join_cannot_feed_itself_or_an_ordinary_stream(folder):
    text = (folder / "base.yaml").read_text()
    (folder / "base.yaml").write_text(
        text.replace("{stream: orders, as: o, closed_by: unique}", "{stream: totals, as: o, closed_by: unique}")
    )
    with pytest.raises(ProjectRefused, match="totals"):
        project_of(folder).run({})
    (folder / "base.yaml").write_text(text.replace("name: totals", "name: orders"))
    with pytest.raises(ProjectRefused, match="orders"):
        project_of(folder).run({})


RANGES = """
kind: test
name: a range of orders is finished
streams:
  orders: {"1": O1, "2": O1, "30": O1, a: O1}
  payments: {"1": P2, "2": P5:4, "30": P9}
punctuations:
  payments: [{range: {to: 29}, time: 4}]
expect:
  events:
    - totals [1] Total4 order=O1 payments=1 sum=null
    - totals [2] Total4 order=O1 payments=0 sum=null
    - totals [30] Total9 order=O1 payments=1 sum=null
    - totals [a] Total9 order=O1 payments=0 sum=null
"""


@pytest.fixture
def promised(folder):
    text = (
        BASE.partition("---\nkind: join\nname: paid")[0] + "---\nkind: join\nname: totals" + BASE.partition("totals")[2]
    )
    (folder / "base.yaml").write_text(text.replace("closed_by: {type: Last}", "closed_by: punctuation"))
    return folder


def test_a_test_says_which_ranges_are_finished(promised, call):
    (promised / "cases.yaml").write_text(RANGES)
    status, out, err = call("test", str(promised))
    assert (status, "1 passed, 0 failed" in err) == (0, True), out


def test_a_run_takes_ranges_from_a_file(promised, call):
    files: dict[str, list[dict[str, Any]]] = {
        "orders": [{"id": f"o{key}", "type": "O", "time": "2026-01-01T00:00:00Z", "key": key} for key in ("7", "8")],
        "payments": [
            {"id": f"p{n}", "type": "P", "time": f"2026-01-01T00:00:0{n}Z", "data": {"order": "7"}} for n in (1, 3)
        ],
        "finished": [{"range": {"to": 7}, "time": "2026-01-01T00:00:02Z"}],
    }
    for name, lines in files.items():
        (promised / f"{name}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    options = [part for name in ("orders", "payments") for part in ("--events", f"{name}={promised / name}.jsonl")]
    options += ["--punctuations", f"payments={promised / 'finished.jsonl'}"]
    status, out, err = call("run", str(promised), *options, "--output", "json")
    assert status == 0, err
    found = orjson.loads(out)
    totals = {one["key"]: (one["time"], one["data"]["payments"]) for one in found["streams"]["totals"]}
    assert totals == {"7": ("2026-01-01T00:00:02.000000Z", 1), "8": ("2026-01-01T00:00:03.000000Z", 0)}
    assert [one["key"] for one in found["dead_letters"]] == ["7"]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('{"range": {"to": 7}}', "line 1: a promise in a run is an object such as"),
        ('{"key": "7", "time": 1}', "line 1: a promise in a run is an object such as"),
        ('\n{"range": {"to": "7"}, "time": 1}', "line 2: 'to' of a range is a whole number"),
        ('{"range": {"to": 7}, "time": "soon"}', "is not RFC 3339"),
        ('{"range": {"to": 7}, "time": 1e300}', "outside the years 1 to 9999"),
        ('{"range": {"to": 7}, "time": 1, "by": 5}', "'by' of a promise is the name"),
        ("{", "line 1: "),
    ],
)
def test_a_promise_that_cannot_be_meant_is_refused(promised, call, line, part):
    (promised / "o.jsonl").write_bytes(b"")
    (promised / "f.jsonl").write_text(line)
    options = ["--events", f"orders={promised / 'o.jsonl'}", "--punctuations", f"payments={promised / 'f.jsonl'}"]
    status, _, err = call("run", str(promised), *options)
    assert status == 2
    assert part in " ".join(err.split())


FAILING = f"""{STREAMS}
kind: join
name: paid
inputs:
  - {{stream: orders, as: o}}
  - {{stream: payments, as: p, closed_by: {{type: Last}}}}
window: 1 h
late: fail
return: {{order: id(o), payment: id(p)}}
"""


def lines_of(events: Sequence[Event]) -> str:
    rows = [
        {"id": one.id, "type": one.type, "time": format_time(one.time_us), "key": one.key, "data": dict(one.data)}
        for one in events
    ]
    return "".join(orjson.dumps(row).decode() + "\n" for row in rows)


def test_a_run_ends_with_an_error_where_a_join_may_not_be_contradicted(tmp_path, call):
    (tmp_path / "p.yaml").write_text(FAILING)
    orders = [Event(id=f"o{n}", type="O", time_us=n, key=key, data={}) for n, key in enumerate("ab", 1)]
    payments = [
        Event(id=f"p{n}", type=kind, time_us=n, key="x", data={"order": key})
        for n, (kind, key) in enumerate([("Part", "a"), ("Last", "a"), ("Part", "a"), ("Part", "b")], 3)
    ]
    for name, events in (("orders", orders), ("payments", payments)):
        (tmp_path / f"{name}.jsonl").write_text(lines_of(events))
    files = [option for name in ("orders", "payments") for option in ("--events", f"{name}={tmp_path / name}.jsonl")]
    status, out, err = call("run", str(tmp_path), *files, "--output", "json")
    found = orjson.loads(out)
    assert [one["data"]["payment"] for one in found["streams"]["paid"]] == ["p3", "p4"]
    assert [(one["stream"], one["event"], one["key"]) for one in found["suspensions"]] == [("payments", "p5", "a")]
    assert status == 2
    assert "is suspended by late: fail: event 'p5' of type 'Part' came" in " ".join(err.split())


UNUSUAL = """
{kind: stream, name: orders}
---
{kind: stream, name: payments}
---
kind: join
name: paid
inputs:
  - {stream: orders, as: o, closed_by: unique}
  - {stream: payments, as: p, key: data.order, window: 1 h, closed_by: end}
outer: [o]
return: {order: o.id, payment: id(p)}
"""


def test_run_and_test_say_what_can_do_nothing_and_count_events_without_a_key(tmp_path, call):
    (tmp_path / "p.yaml").write_text(UNUSUAL)
    (tmp_path / "t.yaml").write_text(
        "kind: test\nname: t\nstreams: {orders: {a: O1}, payments: {x: P2}}\nexpect: {events: []}\n"
    )
    lines = [
        {"id": f"p{n}", "type": "P", "time": f"2026-01-01T00:00:0{n}Z", "key": "x", "data": {"order": key}}
        for n, key in enumerate([None, "", "a"])
    ]
    (tmp_path / "payments.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    status, out, err = call("run", str(tmp_path), "--events", f"payments={tmp_path / 'payments.jsonl'}")
    assert status == 0, err
    assert "notice: paid: return, order: o.id reads the attribute 'id'" in err
    assert "notice: paid: closed_by: end of the input 'p' finishes no key" in err
    assert "notice: paid: p: events without a usable key: 2. A key is a text that is not empty or a whole" in err
    assert out.count("payment=") == 3
    _, out, _ = call("run", str(tmp_path), "--events", f"payments={tmp_path / 'payments.jsonl'}", "--output", "json")
    assert len(orjson.loads(out)["stats"]["notices"]["paid"]) == 3
    _, _, err = call("test", str(tmp_path))
    assert err.count("notice: paid: ") == 3
    assert "notice: paid: p: events without a usable key: 1." in err


@pytest.mark.parametrize("outer", ["[o]", "[]"])
def test_events_without_a_key_that_the_stream_declares_are_counted_and_reported_where_they_are_unmatched(
    tmp_path, call, outer
):
    text = UNUSUAL.replace("name: payments}", "name: payments, keys: {order: data.order}}").replace("[o]", outer)
    text = text.replace("{order: o.id, payment: id(p)}", "{payment: id(p), why: decided_by(o)}")
    text = text if outer == "[o]" else text.replace(", why: decided_by(o)", "")
    (tmp_path / "p.yaml").write_text(text)
    lines = [
        {"id": f"p{n}", "type": "P", "time": f"2026-01-01T00:00:0{n}Z", "key": "x", "data": {"order": key}}
        for n, key in enumerate([None, "", "a", True, 0.5])
    ]
    (tmp_path / "payments.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    events = f"payments={tmp_path / 'payments.jsonl'}"
    status, out, err = call("run", str(tmp_path), "--events", events, "--output", "json")
    assert status == 0, err
    found = orjson.loads(out)
    (notice,) = [one for one in found["stats"]["notices"]["paid"] if "usable" in one]
    assert "p: events without a usable key: 4." in notice
    alone = {one["data"]["payment"]: one["data"]["why"] for one in found["streams"]["paid"]} if outer == "[o]" else {}
    wanted = dict.fromkeys(["p0", "p1", "p3", "p4"], "no_key") | {"p2": "end_of_input"}
    assert alone == (wanted if outer == "[o]" else {})


def test_a_changed_join_is_compared_with_that_of_the_service(tmp_path):
    (tmp_path / "p.yaml").write_text(STREAMS + PAIRS)
    documents = read_project(tmp_path)
    (wanted,) = (one for one in wanted_of(documents, tmp_path) if one.kind.title == "join")
    found = StoredResource(form={**wanted.form, "window": "1 s"}, tag="", at="", answer={})
    change = Change(action="changed", kind=wanted.kind, name="pairs", wanted=wanted, found=found)
    plan = Plan(
        changes=[change], same=0, named=frozenset(), ownership=Ownership(project="p", own=frozenset(), others={})
    )
    events = {
        name: EventBatch.from_events([Event(id=f"{name}{n}", type="E", time_us=n * step, key="k", data={"order": "k"})])
        for name, n, step in (("orders", 1, 1), ("payments", 2, 1_000_000))
    }
    (difference,) = Comparison(plan, documents, tmp_path).differences(events)
    assert (difference.title, len(difference.added), len(difference.lost), difference.same) == ("stream pairs", 1, 0, 0)
