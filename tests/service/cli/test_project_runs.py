"""A project runs without a service: over files, and over the events of its tests."""

import re
from collections import Counter
from random import Random
from typing import Any

import orjson
import pytest
from defusedxml import ElementTree

from house import ROOT
from nfa import parse_pattern
from service.cli.output import counted
from service.projects import LISTS, LocalProject, read_project
from service.runs import InlineRun
from streams import Event, EventBatch
from streams.forms.plain import render_plain
from tests.references.patterns.outcome import reference_matches

ORDER = ROOT / "docs" / "examples" / "order.bpmn"
BASE = """
kind: stream
name: s
keys: {customer: data.customer}
end_events: [End]
---
kind: constraints
name: s
constraints: [{exclusive: [B, X]}]
---
{kind: pattern, name: p, stream: s, text: 'PATTERN p EVENT SEQ(A a, B b)'}
---
{kind: pattern, name: free, stream: s, constraints: off, text: 'PATTERN free EVENT SEQ(A a, B b)'}
---
{kind: pattern, name: off, stream: s, state: draft, text: 'PATTERN off EVENT A a'}
---
{kind: pattern, name: soon, stream: s, text: 'PATTERN soon EVENT SEQ(A a, B b) WITHIN 2 s EMIT TIMEOUTS'}
---
{kind: pattern, name: c, stream: s, text: 'PATTERN c EVENT SEQ(A a, B b) WHERE [customer]'}
"""
CASES = """
kind: test
name: both orders
events: {o-1: A1 B2 X3, o-2: "A1 X2 B9:4"}
expect:
  alerts:
    - p [o-1] a=A1 b=B2
    - soon [o-1] b=B2 a=A1
    - free [o-1] a=A1 b=B2
    - free [o-2] a=A1 b=B9
    - p [o-2] a=A1 b=B9
  deviations: ["[o-1] X3: exclusive", "[o-2] B9"]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def project_of(folder):
    return LocalProject.of(read_project(folder), folder)


def test_patterns_find_what_the_reference_finds_each_under_what_concerns_it(folder):
    rng = Random(7)
    events = [
        Event(id=f"e{n}", type=rng.choice("ABC"), time_us=n, key=rng.choice("kl"), data={"customer": rng.choice("xy")})
        for n in range(60)
    ]
    found = project_of(folder).run({"s": EventBatch.from_events(events)})
    patterns = [parse_pattern(f"PATTERN {name} EVENT SEQ(A a, B b)") for name in ("p", "free")]
    expected = [(one.pattern, one.key, one.bindings["b"]) for one in reference_matches(patterns, events)]
    own = [(one["pattern"], one["key"], tuple(one["bindings"]["b"])) for one in found["alerts"]]
    assert sorted(one for one in own if one[0] in ("p", "free")) == sorted(expected)
    by_customer = [Event(id=e.id, type=e.type, time_us=e.time_us, key=e.data["customer"]) for e in events]
    assert len([one for one in own if one[0] == "c"]) == len(reference_matches(patterns[:1], by_customer))
    assert not [one for one in own if one[0] == "off"]
    assert {one["stream"] for name in LISTS for one in found[name]} == {"s"}


def test_a_workflow_and_constraints_terminate_partial_matches(tmp_path):
    (tmp_path / "order.bpmn").write_bytes(ORDER.read_bytes())
    (tmp_path / "p.yaml").write_text(
        "{kind: workflow, name: order, model_file: order.bpmn}\n---\n"
        "{kind: stream, name: orders, workflow: order}\n---\n"
        "kind: pattern\nname: p\nstream: orders\ntext: PATTERN p EVENT SEQ(CheckInventory c, UseRemoteStock r)\n---\n"
        "{kind: test, name: t, events: CheckInventory1 UseLocalStock2, open: true, expect: {alerts: [], ended: []}}"
    )
    project = project_of(tmp_path)
    events = [
        Event(id=name, type=name, time_us=n, key="k")
        for n, name in enumerate(("ReceiveOrder", "CheckCredit", "CheckInventory", "AllocateStock", "UseLocalStock"))
    ]
    (ended,) = project.run({"orders": EventBatch.from_events(events)}, is_open=True)["endings"]
    assert ended["event"] == "UseLocalStock"
    assert "the workflow order allows no UseRemoteStock" in ended["reason"]


def test_tests_pass_and_fail_with_both_sides(folder, call):
    (folder / "cases.yaml").write_text(CASES)
    status, out, err = call("test", str(folder), "--junit", "out.xml")
    assert (status, out) == (1, out)
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "FAILED both orders"
    assert "! p [o-2] a=A1 b=B9" in lines
    assert "free [o-2] a=A1 b=B9 free [o-2] a=A1 b=B9" in lines
    assert "0 passed, 1 failed" in err
    case = next(ElementTree.parse(folder / "out.xml").iter("testcase"))
    assert (case.get("name"), case.get("classname"), case[0].tag) == ("both orders", "s", "failure")
    (folder / "cases.yaml").write_text(CASES.replace("    - p [o-2] a=A1 b=B9\n", ""))
    status, out, _ = call("test", str(folder), "--junit", "out.xml")
    assert (status, out) == (0, "passed  both orders\n")
    assert not list(ElementTree.parse(folder / "out.xml").iter("failure"))


@pytest.mark.parametrize("text", [CASES, "kind: test\nname: new\nexpect: {alerts: []}\nevents: A1 B2 B9\n# end\n"])
def test_what_was_found_is_written_after_asking(folder, call, monkeypatch, text):
    path = folder / "cases.yaml"
    path.write_text(f"# before\n{text}---\nkind: test\nname: other\nevents: A1\nexpect:\n  alerts: []\n")
    answers = iter([False, True])
    monkeypatch.setattr("typer.confirm", lambda *_, **__: next(answers))
    before = path.read_text()
    assert call("test", str(folder), "--update")[0] == 1
    assert path.read_text() == before
    assert call("test", str(folder), "--update")[0] == 1
    assert path.read_text() != before
    assert path.read_text().startswith("# before\n")
    assert call("test", str(folder))[0] == 0


NAMED = """
kind: test
name: one pattern
patterns: [p]
events: A1 B2
expect:
  alerts: [p a=A1 b=B2]
"""


def test_a_test_is_of_the_patterns_that_it_names(folder, call, monkeypatch):
    (folder / "cases.yaml").write_text(NAMED)
    assert call("test", str(folder))[:2] == (0, "passed  one pattern\n")
    (folder / "cases.yaml").write_text(NAMED.replace("patterns: [p]\n", ""))
    assert "! free a=A1 b=B2" in " ".join(call("test", str(folder))[1].split())
    (folder / "cases.yaml").write_text(NAMED.replace("[p]", "[pp]"))
    status, _, err = call("test", str(folder))
    said = " ".join(err.split())
    assert (status, "cases.yaml:4: no active pattern, join, aggregate or tap is called 'pp'" in said) == (2, True), said


def test_an_update_writes_the_lists_that_the_test_names_only(folder, call, monkeypatch):
    """The pattern ``soon`` times out, and p terminates early at X: neither is written."""
    (folder / "cases.yaml").write_text("kind: test\nname: new\nevents: A1 X5\nexpect:\n  timeouts: []\n")
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    assert call("test", str(folder), "--update")[0] == 1
    written = (folder / "cases.yaml").read_text()
    assert "soon a=A1" in written
    assert "endings" not in written
    assert call("test", str(folder))[0] == 0


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("events: A1 B\nexpect: {alerts: []}", "x.yaml:3: 'B' is not an event; write the type"),
        ("events: A1", '"expect" is a required property'),
        ("events: A1\nexpect: {alert: []}", "x.yaml:4: expect"),
        ("events: A1\nstream: t\nexpect: {alerts: []}", "x.yaml:4: no document declares the stream 't'"),
        ("events: [{id: a, type: A}]\nexpect: {alerts: []}", "'time' is missing"),
        (
            "events: A1\nexpect: {alerts: []}\n---\n{kind: pattern, name: q, stream: z, text: PATTERN q EVENT A}",
            "stream 'z'",
        ),
        (
            "events: [{id: a, type: A, time: 1, key: k, data: {n: 18446744073709551614}}]\nexpect: {alerts: []}",
            "an integer beyond 64 bits in data.n",
        ),
        ("events: A1\nexpect: {alerts: []}\n---\n{kind: stream, name: t}", "say which stream the events are of"),
    ],
)
def test_a_test_that_cannot_be_meant_so_is_refused(folder, call, case, said):
    (folder / "x.yaml").write_text(f"kind: test\nname: t\n{case}")
    status, out, err = call("test", str(folder))
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("x.yaml:") == 1


def test_a_folder_without_tests_says_so(folder, call):
    status, _, err = call("test", str(folder))
    assert (status, "has no documents of the kind test" in err) == (2, True)


def test_files_are_run(folder, call):
    events = [
        Event(id=name, type=name[0], time_us=n, key="k", data={"customer": "x"})
        for n, name in enumerate(("A1", "B2", "B3"))
    ]
    (folder / "e.jsonl").write_bytes(b"".join(orjson.dumps(render_plain(event)) + b"\n" for event in events))
    status, out, _ = call("run", str(folder), "--events", "e.jsonl")
    assert status == 0
    assert out.splitlines()[-1] == "3 events, 8 alerts, 0 timeouts, 0 endings, 0 deviations, 0 corrections"
    assert "alerts  s  1970-01-01T00:00:00.000002Z  p [k] a=A1 b=B3" in out
    status, out, _ = call("run", str(folder), "--events", "s=e.jsonl", "--open", "--output", "json")
    found = orjson.loads(out)
    assert (status, len(found["alerts"]), found["stats"]) == (0, 8, {"events": 3})
    assert call("run", str(folder), "--events", "t=e.jsonl")[0] == 2
    assert "twice" in call("run", str(folder), "--events", "e.jsonl", "--events", "s=e.jsonl")[2]


@pytest.mark.parametrize("options", [(), ("--open",)])
def test_suppressed_alerts_count_in_open_incidents_too(tmp_path, call, options):
    (tmp_path / "p.yaml").write_text(
        "{kind: stream, name: s}\n---\n"
        "{kind: pattern, name: p, stream: s, suppress: {for: 1 h}, incident: {close_after: 2 h}, "
        "text: PATTERN p EVENT A a}\n"
    )
    events = [Event(id=str(n), type="A", time_us=n, key="k", data={}) for n in range(5)]
    (tmp_path / "s.jsonl").write_bytes(b"".join(orjson.dumps(render_plain(event)) + b"\n" for event in events))
    out = call("run", str(tmp_path), "--events", "s.jsonl", "--output", "json", *options)[1]
    (incident,) = orjson.loads(out)["incidents"]
    assert (incident["alerts"], incident["suppressed_alerts"]) == (5, 4)


CHAIN = """
{kind: stream, name: invoices}
---
{kind: stream, name: payments}
---
kind: pattern
name: late
stream: invoices
text: >
  PATTERN late EVENT SEQ(Invoice i, WITHIN 30 s NOT Payment) RETURN i.v AS customer INTO late KEY customer TYPE Late
---
kind: pattern
name: paid
stream: payments
text: PATTERN paid EVENT Payment p RETURN p.v AS amount INTO late TYPE Paid
---
kind: pattern
name: twice
stream: late
text: PATTERN twice EVENT SEQ(Late a, Late b)
---
kind: test
name: two late invoices of one customer
stream: invoices
events: {i1: "Invoice1:ann", i2: "Invoice2:bob Payment9", i3: "Invoice5:ann", i4: "Invoice6:1.5"}
expect:
  events: ["late [ann] Late31 customer=ann", "late  [ann] Late35 customer=ann"]
  timeouts: []
"""


MORE = """
kind: stream
name: s
keys: {customer: data.customer}
end_events: [End]
---
{kind: constraints, name: s, constraints: [{exclusive: [B, C]}]}
---
{kind: pattern, name: ab, stream: s, text: 'PATTERN ab EVENT SEQ(A a, B b)'}
---
{kind: pattern, name: pair, stream: s, text: 'PATTERN pair EVENT SEQ(A a, A b) WHERE [customer] WITHIN 90 s'}
---
kind: pattern
name: ends
stream: s
text: PATTERN ends EVENT SEQ(A a, End e) RETURN e.v AS v INTO ends KEY v TYPE E
---
kind: pattern
name: again
stream: late
text: PATTERN again EVENT SEQ(Paid a, Late b) WITHIN 60 s RETURN a.amount AS v INTO ends TYPE L
---
{kind: pattern, name: seen, stream: ends, text: 'PATTERN seen EVENT SEQ(E e, L l) RETURN e.v AS v INTO seen KEY v'}
---
{kind: pattern, name: of_seen, stream: seen, text: 'PATTERN of_seen EVENT SEQ(_ a, NOT _) WITHIN 100 s'}
"""


@pytest.fixture
def chain(tmp_path):
    (tmp_path / "chain.yaml").write_text(CHAIN)
    return tmp_path


def test_derived_events_are_expected(chain, call):
    assert call("test", str(chain))[:2] == (0, "passed  two late invoices of one customer\n")
    (chain / "chain.yaml").write_text(CHAIN.replace("Late35", "Late36"))
    status, out, _ = call("test", str(chain))
    assert (status, "! late [ann] Late36 customer=ann" in out) == (1, True)


SEVERAL = """
kind: test
name: a union of two streams
streams:
  invoices: {i1: "Invoice1:ann", i2: "Invoice5:ann"}
  payments: [{id: p, type: Payment, time: "1970-01-01T00:00:02Z", key: ann, data: {v: 7}}]
expect:
  events: ["late [ann] Late31 customer=ann", "late [ann] Late35 customer=ann", "late [ann] Paid2 amount=7"]
  alerts: ["twice [ann] a=Late31 b=Late35"]
"""


def test_a_test_has_events_of_several_streams(chain, call):
    path = chain / "several.yaml"
    path.write_text(SEVERAL)
    status, out, _ = call("test", str(chain), "--junit", "out.xml")
    assert (status, "passed  a union of two streams" in out) == (0, True)
    names = {case.get("classname") for case in ElementTree.parse(chain / "out.xml").iter("testcase")}
    assert names == {"invoices", "invoices,payments"}
    path.write_text(path.read_text().replace("amount=7", "amount=8"))
    assert call("test", str(chain))[0] == 1


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ("events: A1\nstreams: {invoices: A1}", "a test has either events, of one stream, or streams"),
        ("open: true", "a test has either events, of one stream, or streams"),
        ("stream: invoices\nstreams: {invoices: A1}", "x.yaml:3: a test with streams names each in there"),
        ("streams: {invoice: A1}", "x.yaml:3: no document declares the stream 'invoice' (did you mean invoices?)"),
        ("streams: {late: A1}", "the events of 'late' are derived"),
        ("streams: {invoices: A}", "x.yaml:3: 'A' is not an event"),
        ("streams: {invoices: 'A1, B2'}", "x.yaml:3: 'A1,' is not an event"),
        ("streams: {}", "x.yaml:3: streams"),
    ],
)
def test_a_test_of_several_streams_that_cannot_be_meant_so_is_refused(chain, call, members, said):
    (chain / "x.yaml").write_text(f"kind: test\nname: t\n{members}\nexpect: {{alerts: []}}")
    status, out, err = call("test", str(chain))
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("x.yaml:") == 1


def test_a_chain_over_two_streams_is_run(chain, call):
    files: dict[str, list[tuple[str, int, str, dict[str, Any]]]] = {
        "i": [("Invoice", 1, "i1", {"v": "ann"}), ("Invoice", 5, "i2", {"v": "ann"}), ("Invoice", 9, "i3", {})],
        "p": [("Payment", 2, "ann", {"v": 7})],
    }
    for name, rows in files.items():
        events = [
            Event(id=f"{name}{n}", type=t, time_us=s * 10**6, key=k, data=d) for n, (t, s, k, d) in enumerate(rows)
        ]
        (chain / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(render_plain(event)) + b"\n" for event in events))
    options = ("run", str(chain), "--events", "invoices=i.jsonl", "--events", "payments=p.jsonl", "--output", "json")
    status, out, _ = call(*options)
    found = orjson.loads(out)
    shown = [(one["type"], one["time"][17:19], one["key"], one["data"]) for one in found["streams"]["late"]]
    assert (status, shown) == (
        0,
        [
            ("Paid", "02", "ann", {"amount": 7}),
            ("Late", "31", "ann", {"customer": "ann"}),
            ("Late", "35", "ann", {"customer": "ann"}),
        ],
    )
    assert [one["pattern"] for one in found["alerts"]] == ["twice"]
    assert [one["pattern"] for one in found["dead_letters"]] == ["late"]
    assert orjson.loads(call(*options, "--open")[1])["streams"]["late"][0]["type"] == "Paid"
    assert orjson.loads(call(*options, "--outputs", "late")[1]) == found
    status, out, _ = call(*options[:-2])
    assert re.search(r"events  late  1970-01-01T00:00:31.000000Z  \[ann\] Late \S+  customer=ann", out)
    assert out.splitlines()[-1].endswith("3 derived events, 1 dead letter")


MEASURED = """
kind: stream
name: s
keys: {customer: data.customer}
lateness: {auto: {start: 5}}
---
{kind: pattern, name: p, stream: s, text: 'PATTERN p EVENT SEQ(A a, B b)'}
---
{kind: pattern, name: c, stream: s, text: 'PATTERN c EVENT SEQ(A a, B b) WHERE [customer]'}
"""


def disordered():
    """Events of one stream, first in order, then up to 80 s too late, then in order."""
    rng = Random(3)
    arrivals = sorted((n + rng.uniform(0, 80 if 600 < n < 1_200 else 1), n) for n in range(2_000))
    return [
        Event(id=f"e{n}", type="AB"[n % 2], time_us=n * 1_000_000, key=f"k{n // 3}", data={"customer": f"c{n // 4}"})
        for _, n in arrivals
    ]


def test_a_measured_lateness_is_the_same_however_the_events_are_cut(tmp_path, call):
    (tmp_path / "base.yaml").write_text(MEASURED)
    project, events, rng = project_of(tmp_path), EventBatch.from_events(disordered()), Random(5)
    whole = project.fed({"s": events})
    expected = whole.results(is_open=False)
    (measured,) = whole.measured.values()
    assert (measured.changes > 0, measured.seconds > 50, 0 < measured.late < 300) == (True, True, True)
    cut, first = InlineRun(project.plan), 0
    while first < len(events):
        size = min(rng.choice([1, 7, 300, 1_000]), len(events) - first)
        cut.feed("s", events.slice(first, size))
        first += size
    assert cut.results(is_open=False) == expected
    assert cut.measured == whole.measured
    lines = [render_plain(event) for event in events.to_events()]
    (tmp_path / "e.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    status, out, _ = call("run", str(tmp_path), "--events", "e.jsonl", "--output", "json")
    assert (status, orjson.loads(out)["stats"]["lateness"]["s"]["late"]) == (0, measured.late)
    last = call("run", str(tmp_path), "--events", "e.jsonl")[1].splitlines()[-2]
    changes, late = counted(measured.changes, "change"), counted(measured.late, "late event")
    said = f"{measured.seconds:g} s at the end, {changes}, {late}"
    assert last == f"lateness  s  {said}"


def test_a_backtest_of_a_project_finds_what_a_run_finds(tmp_path, call):
    folder, rng = tmp_path / "rules", Random(3)
    folder.mkdir()
    (folder / "chain.yaml").write_text(CHAIN)
    (folder / "more.yaml").write_text(MORE)
    asked = []
    for stream, types in (
        ("invoices", ("Invoice", "Payment")),
        ("payments", ("Payment", "Other")),
        ("s", ("A", "B", "C", "End")),
    ):
        events = [
            Event(
                id=f"{stream}{n}",
                type=rng.choice(types),
                time_us=n * 7 * 10**6,
                key=rng.choice(("ann", "bob", "cid", "d")),
                data={"v": rng.choice(["ann", "bob", "cid", None]), "customer": rng.choice("xyz")},
            )
            for n in range(200)
        ]
        (tmp_path / f"{stream}.jsonl").write_bytes(b"".join(orjson.dumps(render_plain(one)) + b"\n" for one in events))
        asked += ["--events", f"{stream}={tmp_path}/{stream}.jsonl"]
    ran = orjson.loads(call("run", str(folder), *asked, "--output", "json")[1])
    options = ("--limit", "100000", "--cores", "2", "--output", str(tmp_path / "rows"), "--json")
    status, out, err = call("backtest", "--project", str(folder), *asked, *options)
    assert status == 0, err
    found = orjson.loads(out)
    letters = Counter(one["stream"] for one in ran["dead_letters"])
    counted = {name: {"not-derivable": number} for name, number in letters.items()}
    assert ran.pop("stats") == {"events": 600, "dead_letters": counted}
    assert found.pop("stats") == {"events": 600, "rounds": 3}
    assert min(map(len, (ran["alerts"], ran["endings"], ran["dead_letters"], *ran["streams"].values()))) > 0
    assert _in_order(found) == _in_order(ran)
    lines = [line for file in (tmp_path / "rows").glob("alert-*") for line in file.read_bytes().splitlines()]
    assert len(lines) == len(ran["alerts"])


def _in_order(found: dict[str, Any]) -> dict[str, list[str]]:
    lists = {**found, **found.pop("streams")}
    return {
        name: sorted(orjson.dumps(one, option=orjson.OPT_SORT_KEYS).decode() for one in some)
        for name, some in lists.items()
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--events", "invoices=none.jsonl"], "none.jsonl is not a file"),
        (["--events", "late=none.jsonl"], "the events of 'late' are derived"),
        (["--events", "invoices=none.jsonl", "--key", "data.x"], "with --project, its documents say this"),
    ],
)
def test_a_backtest_of_a_project_that_cannot_be_meant_so_is_refused(chain, call, options, said):
    status, out, err = call("backtest", "--project", str(chain), *options)
    assert (status, out) == (2, "")
    assert said in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--events", "late=i.jsonl"), "the events of 'late' are derived"),
        (("--events", "invoices=i.jsonl", "--outputs", "lat"), "'lat' is not a derived stream"),
    ],
)
def test_what_is_not_derived_or_only_derived_is_refused(chain, call, options, said):
    (chain / "i.jsonl").write_bytes(b"")
    status, _, err = call("run", str(chain), *options)
    assert (status, said in " ".join(err.split())) == (2, True)


def test_patterns_that_feed_each_other_in_a_circle_are_refused(chain, call):
    (chain / "more.yaml").write_text(
        "{kind: pattern, name: back, stream: late, text: 'PATTERN back EVENT Late INTO late'}"
    )
    status, _, err = call("test", str(chain))
    assert (status, "cannot feed 'late'" in " ".join(err.split())) == (2, True)
