"""Output of the commands for a trace that continues after the end of its model."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

PATTERN = "PATTERN p EVENT SEQ(A a, X x)"
MODEL = "name: m\ntree:\n  sequence: [A, B]\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "m.yaml").write_text(MODEL)
    (tmp_path / "p.pattern").write_text(PATTERN)
    (tmp_path / "end.json").write_text('{"end": ["A"]}')
    return tmp_path


def write(folder: Path, types: str) -> None:
    rows = [{"id": f"e{n}", "type": name, "key": "k", "time": n} for n, name in enumerate(types.split(), 1)]
    (folder / "log.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))


@pytest.mark.parametrize(("option", "matches"), [((), 0), (("--no-prune",), 1), (("--prune", "shadow"), 1)])
def test_match_tells_what_follows_the_end(call, model: Path, option: tuple[str, ...], matches: int) -> None:
    """B is a type of the model, so a second one follows the end; an unknown type would not."""
    write(model, "A B B")
    (model / "p.pattern").write_text("PATTERN p EVENT SEQ(A a, B x, B y)")
    arguments = ["match", "--pattern", "p.pattern", "--workflow", "m.yaml", "--events", "log.jsonl", *option]
    status, out, _ = call(*arguments, "--outputs", "matches,deviations", "--json")
    document = orjson.loads(out)
    assert status == 0
    assert len(document["matches"]) == matches
    assert [(one["event"], one["kind"]) for one in document["deviations"]] == [("e3", "after_end")]
    assert document["deviations"][0].get("released", 0) == 0  # pruning ended the partial match at the first B


def test_match_and_conformance_say_the_same(call, model: Path) -> None:
    write(model, "A B B")
    arguments = ["match", "--pattern", "p.pattern", "--workflow", "m.yaml", "--events", "log.jsonl"]
    _, out, _ = call(*arguments, "--outputs", "deviations", "--json")
    (deviation,) = orjson.loads(out)["deviations"]
    assert (deviation["event"], deviation["kind"]) == ("e3", "after_end")
    assert "the trace was over" in deviation["reason"]
    _, out, _ = call("conformance", "m.yaml", "log.jsonl", "--json")
    (way,) = orjson.loads(out)["deviations"]
    assert (way["event"], way["kind"], way["allowed"]) == ("B", "after_end", [])
    _, out, _ = call("conformance", "m.yaml", "log.jsonl")
    assert "B, after_end" in out
    assert "allowed: nothing; the transaction should have ended" in out


def test_check_counts_in_a_log_what_match_finds_in_it(call, model: Path) -> None:
    write(model, "A B")
    _, out, _ = call("check", "p.pattern", "--constraints", "end.json", "--log", "log.jsonl", "--json")
    assert orjson.loads(out)["past"]["violations"] == [{"constraint": "end(A)", "violations": 1}]
    arguments = ["match", "--pattern", "p.pattern", "--constraints", "end.json", "--events", "log.jsonl"]
    _, out, _ = call(*arguments, "--outputs", "deviations", "--json")
    assert len(orjson.loads(out)["deviations"]) == 1


@pytest.mark.parametrize("way", ["--end", "reopen"])
def test_check_and_match_agree_where_the_event_ends_the_transaction(call, model: Path, way: str) -> None:
    write(model, "A B")
    more = ["--end", "A"] if way == "--end" else []
    if way == "reopen":
        (model / "end.json").write_text('{"end": ["A"], "settings": {"reopen": "new_transaction"}}')
    _, out, _ = call("check", "p.pattern", "--constraints", "end.json", "--log", "log.jsonl", *more, "--json")
    assert orjson.loads(out)["past"]["violations"] == [{"constraint": "end(A)", "violations": 0}]
    arguments = ["match", "--pattern", "p.pattern", "--constraints", "end.json", "--events", "log.jsonl", *more]
    _, out, _ = call(*arguments, "--outputs", "deviations", "--json")
    assert orjson.loads(out)["deviations"] == []
