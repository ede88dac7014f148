"""Runs, backtests and tests of a project in which an operator is suspended."""

from io import StringIO

import orjson
import pytest

LATE = """
{kind: stream, name: o}
---
{kind: stream, name: p}
---
kind: join
name: j
inputs: [{stream: o, as: o, closed_by: unique}, {stream: p, as: p, closed_by: unique}]
late: LATE
outer: [p]
return: {o: id(o), p: id(p)}
"""
MANY = """
{kind: stream, name: o}
---
{kind: stream, name: p}
---
kind: join
name: j
inputs: [{stream: o, as: o}, {stream: p, as: p}]
window: 24 h
results: {per_event: 4, ahead: 2, average: 1}
return: {o: id(o), p: id(p)}
"""
LARGE = """
{kind: stream, name: o}
---
{kind: stream, name: p}
---
{kind: aggregate, name: a, of: o, by: [key], values: {n: count()}, window: 1 h, memory: {rows: 1}}
"""


@pytest.fixture
def files(tmp_path):
    """Projects with operators that are suspended and a project with none, and events with many pairs of one key."""
    projects = {
        "late": LATE.replace("LATE", "fail"),
        "many": MANY,
        "large": LARGE,
        "fine": LATE.replace("LATE", "drop"),
    }
    for name, text in projects.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.yaml").write_text(text)
    for name, minute in (("o", 0), ("p", 1)):
        lines = [
            orjson.dumps({"id": f"{name}{n}", "type": "T", "time": f"2026-03-02T09:0{minute}:{n:02}Z", "key": "k"})
            for n in range(6)
        ]
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(lines))
    return ["--events", "o=o.jsonl", "--events", "p=p.jsonl"]


@pytest.mark.parametrize("more", [(), ("--limit", "0"), ("--cores", "1")])
@pytest.mark.parametrize("project", ["late", "many", "large"])
def test_a_backtest_ends_with_the_error_of_a_run(files, call, project, more):
    expected, _, reason = call("run", project, *files)
    assert (expected, "suspended" in reason) == (2, True), reason
    status, _, err = call("backtest", "--project", project, *files, *more)
    assert (status, err.splitlines()[-1]) == (expected, reason.splitlines()[-1])


@pytest.mark.parametrize(("tested", "against"), [("late", "fine"), ("fine", "late"), ("late", "late")])
def test_a_comparison_says_whose_operator_was_suspended(files, call, tested, against):
    status, out, err = call("backtest", "--project", tested, "--against", against, *files, "--limit", "0")
    reasons = [line for line in err.splitlines() if "suspended by late: fail: event 'o1'" in line]
    assert (status, len(reasons)) == (2, [tested, against].count("late")), err
    assert all("late: the join 'j'" in line for line in reasons)
    assert "compared with" in out, "the results until then are printed"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_join_with_too_many_results_ends_with_a_reason(tmp_path, call, form):
    documents = [
        {"kind": "stream", "name": "a"},
        {"kind": "stream", "name": "b"},
        {
            "kind": "join",
            "name": "both",
            "inputs": [{"stream": "a", "as": "o"}, {"stream": "b", "as": "p"}],
            "window": "24 h",
            "results": {"per_event": 4, "ahead": 40, "average": 1},
            "return": {"o": "id(o)", "p": "id(p)"},
        },
    ]
    project = tmp_path / "project"
    project.mkdir()
    for number, one in enumerate(documents):
        (project / f"{number}.json").write_bytes(orjson.dumps(one))
    for name in "ab":
        lines = [
            orjson.dumps({"id": f"{name}{n}", "type": "T", "time": f"2026-03-02T09:00:{n:02}Z", "key": "unknown"})
            for n in range(30)
        ]
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(lines))
    files = [part for name in "ab" for part in ("--events", f"{name}={tmp_path / name}.jsonl")]
    status, out, err = call("run", str(project), *files, "--output", form)
    assert status == 2
    assert "more results than it may: 40 beyond 1 for each event" in err
    assert "of the key 'unknown'" in err
    assert "Traceback" not in err
    if form == "json":
        found = orjson.loads(out)
        assert len(found["streams"]["both"]) < 120
        assert any("more than 4 results of the join 'both' at once" in one["reason"] for one in found["dead_letters"])


OTHERS = """
---
{kind: pattern, name: reader, stream: j, text: 'PATTERN reader EVENT SEQ(j a, j b)'}
---
{kind: pattern, name: other, stream: o, text: 'PATTERN other EVENT SEQ(A a, A b)'}
"""
CASE = """---
kind: test
name: two
streams: {o: {a: A1 A2}, p: {a: B3}}
MORE
expect:
  LIST
"""


@pytest.mark.parametrize("more", ["", "patterns: [j]", "patterns: [reader]"])
def test_a_test_in_which_an_operator_is_suspended_fails_with_the_reason(files, tmp_path, call, monkeypatch, more):
    case = tmp_path / "late" / "case.yaml"
    case.write_text(OTHERS + CASE.replace("MORE", more).replace("LIST", "events: []"))
    before = case.read_text()
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    status, out, err = call("test", "late", "--update", "--junit", "junit.xml")
    assert (status, err.splitlines()[-1]) == (1, "0 passed, 1 failed")
    assert "! the join 'j' (version 1) is suspended by late: fail: event 'A2'" in out
    assert "is suspended by late: fail" in (tmp_path / "junit.xml").read_text()
    assert case.read_text() == before, "an update would not help"


def test_a_test_of_other_operators_passes(files, tmp_path, call):
    text = CASE.replace("MORE", "patterns: [other]").replace("LIST", "alerts: [other a=A1 b=A2]")
    (tmp_path / "late" / "case.yaml").write_text(OTHERS + text)
    assert call("test", "late")[0] == 0
