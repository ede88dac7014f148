"""The options of ``forestall match``, called as a user calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from house import ROOT
from house.documents import code_blocks
from nfa import parse_pattern, pattern_to_json
from tests.builders.worked_examples import Example, examples_in

BLOCKS = list(code_blocks((ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")))
EXAMPLES = {found.name: found for block in BLOCKS if block.language == "examples" for found in examples_in(block.text)}


def write_example(example: Example, folder: Path) -> list[str]:
    """Files of an example, and the call that answers it."""
    (folder / "p.pattern").write_text(example.text)
    return call_on(example.events, folder, *(["--open"] if example.is_open else []), "--ties", example.ties)


def call_on(events, folder: Path, *options: str) -> list[str]:
    rows = ({"id": e.id, "type": e.type, "time": e.time_us, "key": e.key, "data": dict(e.data)} for e in events)
    (folder / "e.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return ["match", "--pattern", "p.pattern", "--events", "e.jsonl", "--output", "json", *options]


@pytest.mark.parametrize("name", ["E03", "E17", "E31", "E42", "E43", "E55", "E60", "E61"])
def test_worked_examples_are_answered(call, tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    status, out, _ = call(*write_example(example, tmp_path), "--outputs", "matches,timeouts")
    document = orjson.loads(out)
    assert status == 0
    assert [found["bindings"] for found in document["matches"]] == [as_lists(found) for found in example.matches]
    assert [found["bindings"] for found in document["timeouts"]] == [as_lists(found) for found in example.timeouts]


def test_a_refused_example_is_refused_with_its_place(call, tmp_path: Path) -> None:
    status, out, err = call(*write_example(EXAMPLES["E63"], tmp_path))
    assert (status, out) == (2, "")
    assert "p.pattern: line 1, column" in err


def as_lists(bindings) -> dict[str, list[str]]:
    return {alias: list(ids) for alias, ids in bindings.items()}


def test_only_what_is_asked_for_is_listed(call, tmp_path: Path) -> None:
    arguments = write_example(EXAMPLES["E60"], tmp_path)
    usual, timeouts = (orjson.loads(call(*arguments, *more)[1]) for more in ([], ["--outputs", "timeouts"]))
    assert (len(usual["matches"]), usual["timeouts"]) == (1, [])
    assert (timeouts["matches"], len(timeouts["timeouts"])) == ([], 1)
    assert usual["stats"] == timeouts["stats"]
    assert usual["stats"]["timeouts"] == 1
    assert set(usual) == {"matches", "timeouts", "endings", "ended", "deviations", "corrections", "overflow", "stats"}


def test_an_unknown_section_is_refused(call, tmp_path: Path) -> None:
    status, _, err = call(*write_example(EXAMPLES["E60"], tmp_path), "--outputs", "matches,mismatches")
    assert status == 2
    assert "mismatches" in err


def test_people_read_detection_returns_timeouts_and_losses(call, tmp_path: Path) -> None:
    (tmp_path / "p.pattern").write_text(
        "PATTERN p EVENT SEQ(A a, B b, NOT C) WITHIN 4 s LIMIT 1 EMIT TIMEOUTS RETURN a.v AS v, count(b) AS n"
    )
    lines = ["A 1", "A 1", "B 2", "A 3", "X 30"]
    rows = [
        {
            "id": f"e{n}",
            "type": line.split()[0],
            "time": int(line.split()[1]) * 1_000_000,
            "key": "k",
            "data": {"v": "x"},
        }
        for n, line in enumerate(lines, 1)
    ]
    (tmp_path / "e.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    status, out, _ = call("match", "--pattern", "p.pattern", "--events", "e.jsonl", "--outputs", "matches,timeouts")
    assert status == 0
    assert out == (
        "p  k  1970-01-01T00:00:01.000000Z to 1970-01-01T00:00:02.000000Z, detected 1970-01-01T00:00:05.000000Z\n"
        "    a=e1  b=e3\n"
        '    v: "x", n: 1\n\n'
        "timed out:\n"
        "p  k  1970-01-01T00:00:03.000000Z, due 1970-01-01T00:00:07.000000Z\n"
        "    a=e4  missing b\n\n"
        "5 events, 1 match, 1 timeout, 0 terminated early, 0 deviating transactions, peak 4 bound events\n"
        "1 match beyond the limit per event was counted, not listed\n"
        "    p  as time passed: 1 match, 0 partial matches\n"
    )


def test_people_read_violations_corrections_and_what_pruning_would_have_lost(call, tmp_path: Path) -> None:
    (tmp_path / "p.pattern").write_text("PATTERN p EVENT SEQ(A a, NOT X) PATTERN q EVENT SEQ(A a, X x)")
    (tmp_path / "rules.yaml").write_text("- prior: [X, Z]\n")
    rows = [{"id": f"e{n}", "type": name, "time": n, "key": "k"} for n, name in enumerate("AZX", 1)]
    (tmp_path / "e.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    arguments = ["match", "--pattern", "p.pattern", "--events", "e.jsonl", "--constraints", "rules.yaml"]
    status, out, _ = call(*arguments)
    assert status == 0
    assert "detected 1970-01-01T00:00:00.000002Z, decided by the constraints" in out
    assert (
        "deviations, each with the event that breaks the constraints:\n"
        "k  e3  order, 1 bound event had already been dropped" in out
    )
    assert "retracted matches, which had been reported early:\np  k  e3\n    a=e1\n" in out
    _, out, _ = call(*arguments, "--outputs", "matches", "--prune", "shadow")
    assert "deviating, would be lost with pruning" in out
    assert "1 match would have been lost with pruning" in out
    assert "break the constraints" not in out


def test_a_pattern_may_be_json(call, files: Path) -> None:
    text = "PATTERN json_form EVENT SEQ(Quote q [price > 200], Cancel c) RETURN q.price"
    (files / "form.json").write_bytes(orjson.dumps(pattern_to_json(parse_pattern(text))))
    status, out, _ = call("match", "--pattern", "form.json", "--events", "events.jsonl", "--output", "json")
    (found,) = orjson.loads(out)["matches"]
    assert status == 0
    assert (found["pattern"], found["bindings"]) == ("json_form", {"q": ["e1"], "c": ["e3"]})
    assert found["returns"] == {"q.price": 300}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"name": "p",\n "event" 3}', "form.json: line 2, column 10: this is not JSON"),
        ('{"name": "p"}', "form.json: line 1, column 1: "),
        ("[]", "form.json: "),
    ],
)
def test_an_odd_json_form_is_refused_with_file_and_place(call, files: Path, content: str, message: str) -> None:
    (files / "form.json").write_text(content)
    status, _, err = call("match", "--pattern", "form.json", "--events", "events.jsonl")
    assert status == 2
    assert message in err


def test_a_finer_key_cuts_traces_apart(call, files: Path) -> None:
    (files / "finer.pattern").write_text("PATTERN finer EVENT SEQ(Quote q, Cancel c) WHERE [customer, price]")
    (files / "coarse.pattern").write_text("PATTERN coarse EVENT SEQ(Quote q, Quote r) WHERE [customer]")
    arguments = ["--events", "events.jsonl", "--key", "data.customer", "--output", "json"]
    _, out, _ = call("match", "--pattern", "finer.pattern", "--pattern", "coarse.pattern", *arguments)
    assert [(found["pattern"], found["bindings"]) for found in orjson.loads(out)["matches"]] == [
        ("coarse", {"q": ["e1"], "r": ["e2"]})
    ]


NEVER_ENDS = "PATTERN p EVENT SEQ(Quote q, NOT Ship)"


def test_the_end_of_a_file_is_the_end_of_its_traces_unless_it_is_open(call, files: Path) -> None:
    (files / "p.pattern").write_text(NEVER_ENDS)
    arguments = ["match", "--pattern", "p.pattern", "--events", "events.jsonl", "--output", "json"]
    status, out, _ = call(*arguments)
    assert status == 0
    assert [found["bindings"] for found in orjson.loads(out)["matches"]] == [{"q": ["e1"]}]
    status, out, err = call(*arguments, "--open")
    assert (status, out) == (2, "")
    assert "p: line 1, column 30: NOT at the end of the pattern holds until the trace ends" in err
    (files / "ends.yaml").write_text("end: [Cancel]\n")
    status, out, _ = call(*arguments, "--open", "--constraints", "ends.yaml")
    assert status == 0
    assert [found["bindings"] for found in orjson.loads(out)["matches"]] == [{"q": ["e1"]}]


def test_what_is_probably_not_meant_is_noticed(call, files: Path) -> None:
    (files / "p.pattern").write_text("PATTERN p EVENT SEQ(Quote q, Cancel+ c) WHERE q.price > 1")
    status, _, err = call("match", "--pattern", "p.pattern", "--events", "events.jsonl")
    assert status == 0
    assert "notice: p: line 1, column 36: every subset of the repeated events is a match" in err
    assert "q.price > 1 is about the step q alone" in err


@pytest.mark.parametrize("more", [[], ["--constraints", "rules.yaml"]])
def test_end_events_end_traces_as_a_stream_would_have_them(call, files: Path, more: list[str]) -> None:
    (files / "p.pattern").write_text("PATTERN p EVENT SEQ(Quote q, NOT Ship)")
    arguments = ["match", "--pattern", "p.pattern", "--events", "events.jsonl", "--open", "--json", *more]
    status, _, err = call(*arguments)
    assert (status, "holds until the trace ends" in err) == (2, True)
    status, out, _ = call(*arguments, "--end", "Cancel", "--end", "Nothing")
    assert status == 0
    assert [found["bindings"] for found in orjson.loads(out)["matches"]] == [{"q": ["e1"]}]


def test_what_no_event_has_is_noticed(call, files: Path) -> None:
    (files / "p.pattern").write_text("PATTERN p EVENT SEQ(Quote q [pryce > 1], NOT Cancl, _ x [x.v = q.price])")
    status, out, err = call("match", "--pattern", "p.pattern", "--events", "events.jsonl")
    assert status == 0
    assert "no matches" in out
    assert [line for line in err.splitlines() if "notice: p: line" in line and "no" in line] == [
        (
            "notice: p: line 1, column 46: Cancl (did you mean Cancel?) is none of the event types in these events, so "
            "this forbids nothing"
        ),
        (
            "notice: p: line 1, column 30: no event of the type Quote has pryce (did you mean price?), so it is null "
            "everywhere"
        ),
        "notice: p: line 1, column 58: no event here has v, so it is null everywhere",
    ]


def test_a_member_of_the_event_written_as_an_attribute_is_noticed_with_its_function(call, files: Path) -> None:
    (files / "p.pattern").write_text(
        "PATTERN p EVENT SEQ(Quote q, Cancel c [time > q.time AND `key` = 'x' AND id = 1]) RETURN c.type AS t, c.w AS u"
    )
    _, _, err = call("match", "--pattern", "p.pattern", "--events", "events.jsonl")
    assert [line.partition("no event of the type ")[2] for line in err.splitlines() if "null everywhere" in line] == [
        "Cancel has time, so it is null everywhere; the time of the event is time(c)",
        "Quote has time, so it is null everywhere; the time of the event is time(q)",
        "Cancel has key, so it is null everywhere; the key of the event is key(c)",
        "Cancel has id, so it is null everywhere; the id of the event is id(c)",
        "Cancel has type, so it is null everywhere; the type of the event is type(c)",
        "Cancel has w, so it is null everywhere",
    ]


def test_a_prefix_that_is_no_alias_is_noticed_as_such(call, files: Path) -> None:
    (files / "p.pattern").write_text("PATTERN p EVENT SEQ(Quote q [price.net > 1], Cancel c [qu.price > 3])")
    _, _, err = call("match", "--pattern", "p.pattern", "--events", "events.jsonl")
    assert [line.partition("no event")[2] for line in err.splitlines() if "null everywhere" in line] == [
        " of the type Quote has price.net (did you mean price?), so it is null everywhere",
        " of the type Cancel has qu.price, and qu is not an alias that is known here, so it is null everywhere",
    ]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--end", "Cancl"], ["Cancl (did you mean Cancel?)"]),
        (["--constraints", "ends.yaml"], ["Cansel (did you mean Cancel?)"]),
        (["--constraints", "rules.yaml", "--end", "Shipp"], ["Shipp (did you mean Ship?)"]),
        (["--end", "Cancel", "--end", "Cancelled", "--end", "Nothing"], []),
    ],
)
def test_a_misspelt_end_event_is_noticed(call, files: Path, arguments: list[str], names: list[str]) -> None:
    (files / "ends.yaml").write_text("end: [Cansel]\n")
    for command in ("match", "backtest"):
        status, _, err = call(command, "--pattern", "any.pattern", "--events", "events.jsonl", *arguments)
        assert status == 0
        assert [line for line in err.splitlines() if "end event" in line] == [
            f"notice: the end event {name} is none of the event types in these events, so no transaction ends with it"
            for name in names
        ]


@pytest.mark.parametrize(
    "arguments",
    [
        "match --pattern any.pattern --events events.jsonl --json",
        "match --pattern noticed.pattern --events events.jsonl",
        "check any.pattern",
        "--help",
        "--version",
    ],
)
def test_a_command_does_not_wait_for_what_it_does_not_use(files: Path, arguments: str) -> None:
    (files / "noticed.pattern").write_text("PATTERN p EVENT SEQ(Quote q, Cancel+ c)")
    script = """
import sys
from service.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
    command = [sys.executable, "-c", script, *arguments.split()]
    done = subprocess.run(command, cwd=files, capture_output=True, text=True, check=True)
    modules = set(done.stderr.split())
    assert done.stdout
    assert "service.cli.app" in modules
    unused = {
        "redis",
        "pandas",
        "pyspark",
        "fastapi",
        "uvicorn",
        "httpx",
        "structlog",
        "opentelemetry",
        "jsonschema_rs",
    }
    assert not unused & modules
    if arguments.startswith("match"):
        assert not {"workflows", "constraints", "rich", "pyarrow.parquet"} & modules


def test_commands_that_ask_the_running_service_do_not_wait_for_kernels() -> None:
    asking = ["alerts", "backtests", "results", "keys", "operators", "patterns", "status", "streams", "webhooks"]
    script = f"import sys; {'; '.join(f'import service.cli.{name}' for name in asking)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = set(done.stdout.split())
    assert "service.cli.inputs" in modules
    assert not {"numba", "nfa", "constraints", "workflows"} & modules


def test_lateness_and_idle_timeouts_mean_what_they_mean_in_a_stream(call, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("PATTERN p EVENT SEQ(A a, B b)\nPATTERN n EVENT SEQ(A a, NOT B)")
    lines = [
        {"id": name, "type": name[0], "time": f"2026-01-01T09:00:{name[1:]}Z", "key": "m" if name == "X30" else "k"}
        for name in ("B02", "A01", "X30", "A03", "A29")
    ]
    (tmp_path / "e.jsonl").write_text("\n".join(orjson.dumps(line).decode() for line in lines))
    arguments = ["match", "--pattern", str(tmp_path / "p.txt"), "--events", str(tmp_path / "e.jsonl"), "--open"]
    status, out, _ = call(*arguments, "--lateness", "5", "--idle-timeout", "10")
    assert (status, "a=A01  b=B02" in out, "1 event was late" in out) == (0, True, True)
    _, out, _ = call(*arguments, "--lateness", "0", "--late", "process", "--idle-timeout", "10", "--output", "json")
    assert orjson.loads(out)["late"] == 3
    status, _, err = call(*arguments, "--late", "drop", "--idle-timeout", "10")
    assert (status, "without lateness no event is late" in err) == (2, True)


def test_patterns_of_a_further_key_see_its_traces(call, files: Path) -> None:
    (files / "both.pattern").write_text(
        "PATTERN all EVENT Cancel{2} c WHERE [who] PATTERN one EVENT SEQ(Quote q, Cancel c) WHERE [key]"
    )
    arguments = ["match", "--pattern", "both.pattern", "--events", "events.jsonl", "--json"]
    status, out, _ = call(*arguments, "--further-key", "who=data.customer", "--constraints", "rules.yaml")
    report = orjson.loads(out)
    assert status == 0
    assert [(found["pattern"], found["key"], found["bindings"]) for found in report["matches"]] == [
        ("one", "t1", {"q": ["e1"], "c": ["e3"]}),
        ("all", "x", {"c": ["e3", "e5"]}),
    ]  # the constraints, which end the match of t2, say nothing of the customer's
    assert report["stats"]["matches"] == len(report["matches"])
    assert report["stats"]["events"] == 5


@pytest.mark.parametrize(
    ("where", "option", "message"),
    [
        ("[who]", "who", "'who' is not NAME=PATH"),
        ("[other]", "who=data.customer", "[customer] for those of who"),
        ("[who]", "key=data.customer", "key"),
    ],
)
def test_a_further_key_that_means_nothing_is_refused(call, files: Path, where: str, option: str, message: str) -> None:
    (files / "w.pattern").write_text(f"PATTERN p EVENT Cancel c WHERE {where}")
    status, _, err = call("match", "--pattern", "w.pattern", "--events", "events.jsonl", "--further-key", option)
    assert status == 2
    assert message in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--key", "data.a", "--key", "data.b"], "'data.a' is not TYPE=PATH; write one PATH, or TYPE=PATH"),
        (["--key", "A=data.a", "--key", "A=data.b"], "the type 'A' is given twice"),
        (["--key", "A="], "'A=' is not TYPE=PATH"),
        (["--key", "Quote=key"], "type 'Cancel' has no correlation key here; the key is declared for the types Quote"),
        (["--further-key", "w:A=a", "--further-key", "w=b"], "'w' has one path for all types, or one for each type"),
        (["--further-key", "w=b", "--further-key", "w:A=a"], "'w' has one path for all types, or one for each type"),
    ],
)
def test_keys_by_type_that_say_nothing_are_refused(call, files: Path, options: list[str], message: str) -> None:
    status, _, err = call("match", "--pattern", "any.pattern", "--events", "events.jsonl", *options)
    assert status == 2
    assert message in " ".join(err.replace("│", " ").split())


def test_traces_of_a_further_key_have_no_end(call, files: Path) -> None:
    (files / "w.pattern").write_text("PATTERN p EVENT SEQ(Cancel c, NOT Ship) WHERE [who]")
    arguments = ["match", "--pattern", "w.pattern", "--events", "events.jsonl", "--further-key", "who=data.customer"]
    status, _, err = call(*arguments)
    assert status == 2
    assert "and traces of the further key who have no end, also where the stream has end events; add WITHIN" in err
    assert "add an end event" not in err


def test_patterns_read_tables_that_are_files(call, tmp_path: Path) -> None:
    (tmp_path / "limits.csv").write_text("s,highest\nboiler,90\n")
    (tmp_path / "p.pattern").write_text("PATTERN p FOR EACH ROW OF limits t EVENT R a [s = t.s AND v > t.highest]")
    rows = [
        {"id": str(v), "type": "R", "time": "2026-01-01T09:00:00Z", "key": "k", "s": "boiler", "v": v} for v in (90, 91)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "e.parquet")
    for table in ("limits=limits.csv", "limits:s=limits.csv", "limits:s:text=limits.csv"):
        status, out, _ = call("match", "--pattern", "p.pattern", "--events", "e.parquet", "--json", "--table", table)
        found = orjson.loads(out)["matches"]
        assert (status, [(one["row"], one["bindings"]) for one in found]) == (
            0,
            [({"s": "boiler"}, {"a": ["91"]})],
        )
    for table, message in [
        ("limits", "is not NAME=FILE"),
        ("limits:name=limits.csv", "no column 'name'"),
        ("limits:s:int=limits.csv", "the type 'int' of 's' is unknown"),
    ]:
        status, _, err = call("match", "--pattern", "p.pattern", "--events", "e.parquet", "--table", table)
        assert status == 2
        assert message in err


def test_a_lookup_of_texts_that_is_compared_with_numbers_is_noticed(call, tmp_path: Path) -> None:
    (tmp_path / "limits.csv").write_text("s,highest\nboiler,high\n")
    (tmp_path / "p.pattern").write_text("PATTERN p EVENT R a [v > lookup(limits, s).highest]")
    data = {"s": "boiler", "v": 9}
    line = {"id": "1", "type": "R", "time": "2026-01-01T09:00:00Z", "key": "k", "data": data}
    (tmp_path / "e.jsonl").write_bytes(orjson.dumps(line))
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/limits.csv").write_text("s,highest\nboiler,high\n")
    (tmp_path / "rules/r.yaml").write_text(
        "{kind: stream, name: s}\n---\n{kind: table, name: limits, file: limits.csv, key: [s]}\n---\n"
        "{kind: pattern, name: p, stream: s, text: 'PATTERN p EVENT R a [v > lookup(limits, s).highest]'}\n"
    )
    for command in (("match", "--pattern", "p.pattern", "--table", "limits=limits.csv"), ("run", "rules")):
        status, _, err = call(*command, "--events", "e.jsonl")
        assert status == 0, err
        assert "notice: p: line 1, column 26: lookup(limits, s).highest is a text, as the column highest" in err
