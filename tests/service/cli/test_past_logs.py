"""The commands that look back: discover, conformance, and check over a log."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
import yaml

from constraints import Exclusive, Prior, parse_constraints
from nfa import OnViolation

MODEL = """
name: "deal"
tree:
  sequence:
    - "Quote"
    - xor: ["Ship", "Cancel"]
    - optional: "Thank you"
"""
TRACES = [["Quote", "Ship"]] * 12 + [["Quote", "Cancel", "Thank you"]] * 8
STRAY = [["Quote", "Cancel", "Ship"], ["Quote", "Dance"], ["Quote"]]


def lines(traces: list[list[str]]) -> bytes:
    """The traces one after the other, an event each second."""
    written, second = b"", 0
    for number, trace in enumerate(traces):
        for event_type in trace:
            event = {"id": f"e{second}", "type": event_type, "key": f"t{number}", "time": second * 1_000_000}
            written += orjson.dumps(event) + b"\n"
            second += 1
    return written


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "past.jsonl").write_bytes(lines(TRACES))
    (tmp_path / "stray.jsonl").write_bytes(lines(TRACES + STRAY))
    (tmp_path / "deal.yaml").write_text(MODEL)
    return tmp_path


def test_discover_prints_a_document_that_can_be_uploaded(call, logs: Path) -> None:
    status, out, err = call("discover", "past.jsonl", "--min-expected", "4")
    parsed = parse_constraints(out)
    assert (status, err) == (0, "")
    assert Exclusive("Cancel", "Ship") in parsed.constraint_set.constraints
    assert parsed.constraint_set.settings.on_violation is OnViolation.REPORT
    assert yaml.safe_load(out)["settings"] == {"on_violation": "report"}
    assert parsed.mined is not None
    assert (parsed.mined["log"], parsed.mined["traces"], parsed.mined["events"]) == ("past.jsonl", 20, 48)
    assert (parsed.mined["from"], parsed.mined["until"]) == (
        "1970-01-01T00:00:00.000000Z",
        "1970-01-01T00:00:47.000000Z",
    )
    _, json, _ = call("discover", "past.jsonl", "--min-expected", "4", "--output", "json")
    assert parse_constraints(json).constraint_set == parsed.constraint_set
    assert orjson.loads(json)["mined"] == parsed.mined


def test_discover_takes_thresholds(call, logs: Path) -> None:
    arguments = ["discover", "stray.jsonl", "--output", "json", "--min-expected", "2"]
    strict = orjson.loads(call(*arguments)[1])
    assert {"exclusive": ["Cancel", "Ship"]} not in strict["constraints"]
    loose = orjson.loads(call(*arguments, "--min-confidence", "0.8", "--min-support", "0.2", "--rules", "--all")[1])
    assert {"exclusive": ["Cancel", "Ship"]} in loose["constraints"]
    assert {"init": ["Quote"]} in loose["constraints"]
    assert {"precedence": ["Quote", "Ship"]} in loose["constraints"]
    told = {entry["constraint"]: entry for entry in loose["mined"]["constraints"]}
    assert told["exclusive(Cancel, Ship)"] == {
        "constraint": "exclusive(Cancel, Ship)",
        "support": 9,
        "confidence": round(8 / 9, 6),
        "violations": 1,
    }
    status, _, err = call("discover", "past.jsonl", "--min-confidence", "2")
    assert status == 2
    assert "min_confidence is above 0 and at most 1, got 2" in err


def test_discover_tells_contradictions_and_words(call, logs: Path) -> None:
    (logs / "odd.jsonl").write_bytes(lines([["A"], ["B"]]))
    arguments = ["discover", "odd.jsonl", "--min-support", "1", "--min-confidence", "0.3", "--min-expected", "0"]
    _, out, err = call(*arguments, "--output", "text")
    assert "is left out: no trace can keep it and the rest" in err
    assert "2 traces, 2 events:" in out
    _, out, _ = call("discover", "stray.jsonl", "--min-confidence", "0.8", "--min-expected", "2", "--output", "text")
    assert "exclusive:\n  exclusive(Cancel, Ship)  88.89% of 9 traces, 1 breaks it" in out


def test_discover_without_times_knows_no_dates(call, logs: Path) -> None:
    (logs / "timeless.csv").write_text("key,type\n" + "".join(f"t{number},A\n" for number in range(9)))
    _, out, _ = call("discover", "timeless.csv", "--times", "line", "--output", "json")
    mined = orjson.loads(out)["mined"]
    assert (mined["from"], mined["until"], mined["traces"]) == (None, None, 9)


def test_conformance_of_a_log_that_conforms(call, logs: Path) -> None:
    status, out, err = call("conformance", "deal.yaml", "past.jsonl")
    assert (status, err) == (0, "")
    assert out == "20 transactions: 20 conform (100.0%), 20 of them are complete (100.0%)\n"


def _way(event: str, kind: str, allowed: list[str], example: str) -> dict[str, object]:
    return {"event": event, "kind": kind, "allowed": allowed, "broken_constraints": [], "traces": 1, "example": example}


def test_conformance_tells_where_traces_leave_the_model(call, logs: Path) -> None:
    status, out, _ = call("conformance", "deal.yaml", "stray.jsonl", "--output", "json")
    document = orjson.loads(out)
    assert status == 1
    assert document == {
        "workflow": "deal",
        "log": "stray.jsonl",
        "traces": 23,
        "events": 54,
        "conforming": 21,
        "complete": 20,
        "fitting_share": round(21 / 23, 6),
        "complete_share": round(20 / 23, 6),
        "is_exact": True,
        "method": "compositional",
        "deviations": [
            _way("Dance", "unknown_type", ["Cancel", "Ship"], "t21"),
            _way("Ship", "workflow", ["Thank you"], "t20"),
        ],
        "unknown": [{"type": "Dance", "traces": 1}],
        "warnings": [],
    }
    _, text, _ = call("conformance", "deal.yaml", "stray.jsonl")
    assert "23 transactions: 21 conform (91.3%), 20 of them are complete (87.0%)" in text
    assert "event types that are not in the model: Dance (1 transaction)" in text
    assert "      1  Ship, workflow  (for example t20)\n         allowed: Thank you\n" in text


def test_conformance_maps_tasks_and_refuses_what_is_no_model(call, logs: Path) -> None:
    (logs / "names.yaml").write_text('Ship: "Dance"\n')
    status, _, _ = call("conformance", "deal.yaml", "past.jsonl", "--map", "names.yaml", "--output", "json")
    assert status == 1
    (logs / "broken.yaml").write_text("tree: {sequence: 3}\n")
    status, out, err = call("conformance", "broken.yaml", "past.jsonl", "--output", "json")
    assert (status, out) == (2, "")
    assert orjson.loads(err)["error"] == "model-refused"


def test_check_counts_violations_over_a_log(call, logs: Path) -> None:
    (logs / "rules.yaml").write_text(
        "- exclusive: [Cancel, Ship]\n- end: [Thank you]\n- prior: ['Quote [x > 1]', Ship]\n"
    )
    arguments = ["check", "PATTERN p EVENT SEQ(Quote q, Ship s)", "--constraints", "rules.yaml"]
    status, out, _ = call(*arguments, "--log", "stray.jsonl")
    assert status == 0
    assert out.endswith(
        "past traces that break a constraint, of 23 traces of stray.jsonl:\n"
        "  1 (4.3%)  exclusive(Cancel, Ship)\n"
        "  0  end(`Thank you`)\n"
        "  not known  prior(Quote [x > 1], Ship)\n"
    )
    _, json, _ = call(*arguments, "--log", "stray.jsonl", "--json")
    assert orjson.loads(json)["past"] == {
        "source": "log",
        "log": "stray.jsonl",
        "traces": 23,
        "violations": [
            {"constraint": "end(`Thank you`)", "violations": 0},
            {"constraint": "exclusive(Cancel, Ship)", "violations": 1},
            {"constraint": "prior(Quote [x > 1], Ship)", "violations": None},
        ],
    }
    _, json, _ = call(*arguments, "--json")
    assert orjson.loads(json)["past"] is None


def test_check_tells_what_a_mined_document_says(call, logs: Path) -> None:
    _, document, _ = call("discover", "stray.jsonl", "--min-confidence", "0.8", "--min-expected", "2", "--rules")
    (logs / "mined.yaml").write_text(document)
    arguments = ["check", "PATTERN p EVENT SEQ(Quote q, Ship s)", "--constraints", "mined.yaml"]
    _, out, _ = call(*arguments)
    assert "of 23 traces of stray.jsonl, as the document says:\n  1 (4.3%)  " in out
    assert "not known" not in out
    told = orjson.loads(call(*arguments, "--json")[1])["past"]
    counted = orjson.loads(call(*arguments, "--json", "--log", "stray.jsonl")[1])["past"]
    assert told == {**counted, "source": "mined"}


@pytest.mark.parametrize(
    "mined", ["{}", "{constraints: 3}", "{constraints: [3, {}], traces: many}", "{constraints: [{constraint: [1]}]}"]
)
def test_check_survives_odd_words_about_the_past(call, logs: Path, mined: str) -> None:
    (logs / "odd.yaml").write_text(f"prior: [[Quote, Ship]]\nmined: {mined}\n")
    status, out, _ = call("check", "PATTERN p EVENT SEQ(Quote q, Ship s)", "--constraints", "odd.yaml")
    assert status == 0
    assert "  not known  prior(Quote, Ship)" in out


def test_check_tells_the_past_of_a_clash_too(call, logs: Path) -> None:
    (logs / "clash.yaml").write_text("- existence: [A]\n- absence: [1, A]\n")
    arguments = ["check", "PATTERN p EVENT Quote q", "--constraints", "clash.yaml", "--json", "--log", "past.jsonl"]
    status, out, _ = call(*arguments)
    assert status == 2
    assert [entry["violations"] for entry in orjson.loads(out)["past"]["violations"]] == [20, 0]


def test_mined_has_to_be_a_mapping() -> None:
    with pytest.raises(Exception, match="mined is a mapping that says where the set comes from"):
        parse_constraints({"prior": [["A", "B"]], "mined": 3})
    parsed = parse_constraints("prior: [[A, B]]\nmined: {a: 1, b: 0.5, c: null, d: [true, x], e: 2020-01-01}\n")
    assert parsed.constraint_set.constraints == (Prior("A", "B"),)
    assert parsed.mined == {"a": 1, "b": 0.5, "c": None, "d": [True, "x"], "e": "2020-01-01"}
