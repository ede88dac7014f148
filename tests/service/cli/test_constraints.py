"""``forestall constraints``, called as a user calls it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

TREE = """
name: "claims"
tree:
  sequence:
    - "File claim"
    - xor: ["Pay", "Reject", {sequence: ["Ask", "Pay"]}]
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "claims.yaml"
    path.write_text(TREE)
    return path


def test_json_holds_all_relations_sorted(call, model: Path) -> None:
    status, out, err = call("constraints", str(model), "--output", "json")
    assert (status, err) == (0, "")
    assert out.count("\n") == 1
    assert orjson.loads(out) == {
        "prior": [
            ["Ask", "Ask"],
            ["Ask", "Pay"],
            ["Ask", "Reject"],
            ["File claim", "Ask"],
            ["File claim", "File claim"],
            ["File claim", "Pay"],
            ["File claim", "Reject"],
            ["Pay", "Pay"],
            ["Pay", "Reject"],
            ["Reject", "Ask"],
            ["Reject", "Pay"],
            ["Reject", "Reject"],
        ],
        "exclusive": [["Ask", "Reject"], ["Pay", "Reject"]],
        "require": [
            ["Ask", "File claim"],
            ["Ask", "Pay"],
            ["Pay", "File claim"],
            ["Reject", "File claim"],
        ],
        "horn": [{"body": [], "head": "File claim"}],
        "end": ["Pay", "Reject"],
        "events": ["Ask", "File claim", "Pay", "Reject"],
        "method": "compositional",
        "warnings": [],
    }


def test_text_shows_a_few_with_their_origins_and_says_so(call, model: Path) -> None:
    status, out, _ = call("constraints", str(model))
    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith("claims: automaton of 4 states; constraints found block by block (compositional)")
    assert "events: Ask, File claim, Pay, Reject" in lines
    assert "end events: Pay, Reject" in lines
    assert "5 of 19 constraints; all others follow from these and the end events, --full lists them" in lines
    (order,) = [line for line in lines if line.startswith("  prior(`File claim`, Ask)")]
    assert "File claim comes before Ask" in order
    assert "  existence(`File claim`)    File claim is in no choice" in lines


def test_full_lists_them_all(call, model: Path) -> None:
    _, out, _ = call("constraints", str(model), "--full")
    assert "19 of 19 constraints" in out.splitlines()
    assert sum(line.startswith("  ") for line in out.splitlines()) == 19


def test_a_mapping_renames_and_silences_tasks_and_unknown_keys_are_warned_of(call, model: Path, tmp_path: Path) -> None:
    mapping = tmp_path / "map.yaml"
    mapping.write_text('"File claim": Filed\nAsk: null\nOther: X\n')
    _, out, _ = call("constraints", str(model), "--map", str(mapping), "--output", "json")
    document = orjson.loads(out)
    assert document["events"] == ["Filed", "Pay", "Reject"]
    assert len(document["warnings"]) == 1
    assert "'Other'" in document["warnings"][0]
    _, text, _ = call("constraints", str(model), "--map", str(mapping))
    assert "warning: " in text


@pytest.mark.parametrize("output", ["json", "text"])
def test_a_refused_model_is_said_once_as_text_or_as_json(call, tmp_path: Path, output: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text('tree: {xor: ["A", {sequence: []}], and: ["B"]}')
    status, out, err = call("constraints", str(path), "--output", output)
    assert status == 2
    assert (out, err.count("\n")) == ("", 1)
    if output == "text":
        assert err.startswith(f"error: {tmp_path}/broken.yaml: tree")
        return
    document = orjson.loads(err)
    assert document["error"] == "model-refused"
    assert document["message"]
    assert document["problems"][0].keys() == {"element", "message"}


def test_a_file_that_is_no_model_is_named_with_the_known_forms(call, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    status, _, err = call("constraints", "notes.txt")
    assert (status, "error: notes.txt: line 1: a tree file is a mapping with name and tree; BPMN 2.0" in err) == (
        2,
        True,
    )


def test_a_model_that_never_completes_is_refused_alike(call, tmp_path: Path) -> None:
    path = tmp_path / "stuck.pnml"
    path.write_text(
        '<pnml><net id="n" type="http://www.pnml.org/version-2009/grammar/pnmlcoremodel"><page id="p">'
        '<place id="i"><initialMarking><text>1</text></initialMarking></place><place id="x"/><place id="o"/>'
        '<transition id="t"><name><text>T</text></name></transition>'
        '<arc id="a" source="i" target="t"/><arc id="b" source="x" target="t"/><arc id="c" source="t" target="o"/>'
        "</page></net></pnml>"
    )
    status, _, err = call("constraints", str(path), "--output", "json")
    assert status == 2
    assert orjson.loads(err)["error"] in {"unsound-workflow", "model-refused"}


def test_a_missing_file_is_said_in_the_same_form(call) -> None:
    status, _, err = call("constraints", "none.bpmn")
    assert status == 2
    assert "none.bpmn cannot be read" in err


def test_a_file_without_end_is_not_read_to_the_end(call) -> None:
    status, _, err = call("constraints", "/dev/zero")
    assert status == 2
    assert "bytes, more than any model" in err
