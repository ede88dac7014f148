"""The JSON form: what documents look like, and that a wrong one is refused with the path to what is wrong."""

from __future__ import annotations

import pytest

from nfa.errors import PatternRefused
from nfa.language.description import describe_pattern
from nfa.language.json_form import Json, expression_to_json, pattern_to_json
from nfa.language.json_reading import pattern_from_json
from nfa.language.parsing import parse_pattern
from nfa.syntax import Atom, Attribute, Comparison, Literal

A: dict[str, object] = {"op": "atom", "types": ["A"], "alias": "a"}
B: dict[str, object] = {"op": "atom", "types": ["B"], "alias": "b"}


TEXT = """PATTERN p
EVENT SEQ(A|B a [v > 3], WITHIN 5 s NEXT C+ c EACH STRICT UNTIL U u GREEDY, STRICT NOT N, AND(_ d, E? e) WITHIN 1 s)
WHERE [k, m.n] AND a.v = -1 WITHIN 1 min SELECT NEXT SKIP TO FIRST a LIMIT 3 EMIT TIMEOUTS RETURN count(c) AS n"""
V: dict[str, Json] = {"attr": ["v"], "of": None}
DOCUMENT: dict[str, Json] = {
    "name": "p",
    "event": {
        "op": "seq",
        "items": [
            {
                "of": {
                    "op": "atom",
                    "types": ["A", "B"],
                    "alias": "a",
                    "if": {"op": ">", "args": [V, {"lit": 3}]},
                }
            },
            {
                "of": {
                    "op": "repeat",
                    "of": {"op": "atom", "types": ["C"], "alias": "c"},
                    "min": 1,
                    "max": None,
                    "each": {"mode": "strict"},
                    "until": {"op": "atom", "types": ["U"], "alias": "u"},
                    "greedy": True,
                },
                "gap": {"mode": "next", "within_us": 5_000_000},
            },
            {"not": {"op": "atom", "types": ["N"], "alias": "N"}, "gap": {"mode": "strict"}},
            {
                "of": {
                    "op": "and",
                    "items": [
                        {"op": "atom", "types": ["_"], "alias": "d"},
                        {
                            "op": "repeat",
                            "of": {"op": "atom", "types": ["E"], "alias": "e"},
                            "min": 0,
                            "max": 1,
                        },
                    ],
                    "within_us": 1_000_000,
                }
            },
        ],
    },
    "keys": [["k"], ["m", "n"]],
    "where": {"op": "=", "args": [{"attr": ["v"], "of": "a"}, {"lit": -1}]},
    "within_us": 60_000_000,
    "select": "next",
    "after": {"rule": "skip_to_first", "alias": "a"},
    "limit": 3,
    "timeouts": True,
    "return": [{"expr": {"op": "call", "name": "count", "args": [{"attr": [], "of": "c"}]}, "as": "n"}],
}


def test_a_whole_document() -> None:
    assert pattern_to_json(parse_pattern(TEXT)) == DOCUMENT
    assert pattern_from_json(DOCUMENT) == parse_pattern(TEXT)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("v IS NOT NULL", {"op": "not", "args": [{"op": "is_null", "args": [{"attr": ["v"], "of": None}]}]}),
        ("v IN (1, 'x')", {"op": "in", "args": [{"attr": ["v"], "of": None}, {"lit": 1}, {"lit": "x"}]}),
        ("v LIKE 'x%'", {"op": "like", "args": [{"attr": ["v"], "of": None}, {"lit": "x%"}]}),
        ("-a.v", {"op": "neg", "args": [{"attr": ["v"], "of": "a"}]}),
        ("2 s", {"lit": 2_000_000}),
        ("TRUE OR NULL", {"op": "or", "args": [{"lit": True}, {"lit": None}]}),
        ("v * 2.0", {"op": "*", "args": [{"attr": ["v"], "of": None}, {"lit": 2.0}]}),
        (
            "prev(v)  IS NULL",
            {"op": "is_null", "args": [{"op": "call", "name": "prev", "args": [{"attr": ["v"], "of": None}]}]},
        ),
    ],
)
def test_expressions(text: str, document: Json) -> None:
    atom = parse_pattern(f"PATTERN p EVENT A a [{text}]").event
    assert isinstance(atom, Atom)
    assert atom.condition is not None
    assert expression_to_json(atom.condition) == document
    assert pattern_from_json({"name": "p", "event": A | {"if": document}}).event == atom


def test_defaults_may_be_left_out() -> None:
    pattern = pattern_from_json(
        {
            "name": "p",
            "event": {"op": "atom", "types": ["A", "x.B"], "if": {"attr": ["v"]}},
            "return": [{"expr": {"attr": ["v"], "of": "A|x.B"}}],
        }
    )
    assert pattern == parse_pattern("PATTERN p EVENT A|x.B [v] RETURN `A|x.B`.v")
    assert [column.name for column in pattern.returns] == ["`A|x.B`.v"]
    assert pattern.text == describe_pattern(pattern)


def test_a_large_constant_is_a_float_as_in_text() -> None:
    condition = {"op": "=", "args": [{"attr": ["v"]}, {"lit": 2**63}]}
    atom = pattern_from_json({"name": "p", "event": A | {"if": condition}}).event
    assert atom == Atom(("A",), "a", Comparison("=", Attribute(("v",)), Literal(2.0**63)))


def seq(*items: object) -> dict[str, object]:
    return {"op": "seq", "items": list(items)}


def repeat(of: object, **fields: object) -> dict[str, object]:
    return {"op": "repeat", "of": of, "min": 1, "max": None} | fields


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "at /: expected an object, found a list of 0"),
        ({"event": A}, "at /: the field name is missing"),
        ({"name": "p", "event": A, "having": 1}, "at /: the field 'having' is not known; there are name, event, keys"),
        (
            {"name": "", "event": A},
            "at /name: expected a name: a text that is not empty and holds no back quote, found ''",
        ),
        ({"name": "p", "event": A | {"types": []}}, "at /event/types: expected a list of at least 1"),
        ({"name": "p", "event": A | {"types": ["`"]}}, "at /event/types/0: expected a name"),
        ({"name": "p", "event": A | {"types": ["A", "_"]}}, 'at /event/types: "_" means any type'),
        ({"name": "p", "event": {"types": ["A"]}}, "at /event: the field op is missing; it is one of atom, repeat"),
        ({"name": "p", "event": {"op": "step"}}, "at /event/op: expected atom, repeat, seq, and or or, found 'step'"),
        ({"name": "p", "event": seq({"of": A}, {"of": 3})}, "at /event/items/1/of: expected an object, found 3"),
        ({"name": "p", "event": seq({"of": A, "not": B})}, "at /event/items/0: an item has either the field of or"),
        ({"name": "p", "event": seq({"of": A}, {"not": repeat(B)})}, "at /event/items/1/not/op: expected atom, found"),
        (
            {"name": "p", "event": seq({"of": A}, {"of": B, "gap": {}})},
            "at /event/items/1/gap: a gap has a mode, within",
        ),
        ({"name": "p", "event": repeat(repeat(A))}, "at /event/of: a repetition of a repetition is written with a seq"),
        ({"name": "p", "event": repeat(A, min=True)}, "at /event/min: expected a whole number from 0 to"),
        ({"name": "p", "event": repeat(A, greedy=1)}, "at /event/greedy: expected true or false, found 1"),
        (
            {"name": "p", "event": seq({"of": A}) | {"within_us": 5}},
            "at /event: the span of the whole match is the pattern's",
        ),
        ({"name": "p", "event": repeat(seq({"of": A}) | {"within_us": 5})}, "at /event: a span of each iteration"),
        ({"name": "p", "event": A, "within_us": 0}, "at /within_us: expected a whole number from 1 to"),
        (
            {"name": "p", "event": A, "limit": 10**400},
            "at /limit: expected a whole number from 1 to 1000000000, found a n",
        ),
        ({"name": "p", "event": A, "select": "any"}, "at /select: expected all, next or strict, found 'any'"),
        (
            {"name": "p", "event": A, "after": {"rule": "skip_to_last"}},
            "at /after: the rules skip_to_first and skip_to",
        ),
        ({"name": "p", "event": A, "keys": [[]]}, "at /keys/0: expected a list of at least 1"),
        ({"name": "p", "event": A | {"if": {"op": "="}}}, "at /event/if: the field args is missing"),
        (
            {"name": "p", "event": A | {"if": {"op": "=", "args": [{"lit": 1}]}}},
            "at /event/if/args: expected a list of at",
        ),
        (
            {"name": "p", "event": A | {"if": {"op": "not", "args": [{"lit": 1}, {"lit": 1}]}}},
            "at /event/if/args: expected a list of 1, found a list of 2",
        ),
        (
            {"name": "p", "event": A | {"if": {"lit": []}}},
            "at /event/if: expected a text, a number, true, false or null",
        ),
        ({"name": "p", "event": A | {"if": {"lit": float("nan")}}}, "at /event/if: a constant is a finite number"),
        ({"name": "p", "event": A | {"if": {"lit": 10**400}}}, "at /event/if: the number is larger than a float64"),
        (
            {"name": "p", "event": A | {"if": {"op": "like", "args": [{"lit": "a"}, {"lit": 1}]}}},
            "at /event/if/args/1: expected a constant text",
        ),
        (
            {"name": "p", "event": A | {"if": {"op": "call", "name": "COUNT", "args": [{"lit": 1}]}}},
            "at /event/if/name: expected count, sum, min",
        ),
        (
            {"name": "p", "event": A | {"if": {"attr": ["v"], "of": "b"}}},
            "at /event/if: 'b' is not an alias that is known here",
        ),
        (
            {"name": "p", "event": A | {"if": {"attr": ["a"]}}},
            "at /event/if: the alias 'a' hides the attribute of that name",
        ),
        ({"name": "p", "event": A | {"if": {"attr": []}}}, "at /event/if: an attribute without path and step means"),
        (
            {"name": "p", "event": A, "where": {"attr": ["v"]}},
            "at /where: the field of is missing: where and return read",
        ),
        (
            {"name": "p", "event": seq({"of": A}, {"not": B}, {"of": A | {"alias": "c", "if": {"attr": ["b", "v"]}}})},
            "at /event/items/2/of/if: the alias 'b' hides the attribute",
        ),
    ],
)
def test_another_form_is_refused_with_its_path(document: object, message: str) -> None:
    with pytest.raises(PatternRefused) as caught:
        pattern_from_json(document)
    assert caught.value.reason == "json"
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"name": "p", "event": seq({"not": A})}, "no-positive-step"),
        ({"name": "p", "event": repeat(A, min=3, max=2)}, "quantifier"),
        ({"name": "p", "event": repeat(A, max=0)}, "quantifier"),
        ({"name": "p", "event": repeat(A, max=1_001)}, "too-large"),
        ({"name": "p", "event": A, "timeouts": True}, "needs-within"),
        ({"name": "p", "event": {"op": "and", "items": [A, A]}}, "duplicate-alias"),
        ({"name": "p", "event": A, "where": {"attr": [], "of": "a"}}, "bare-alias"),
        ({"name": "p", "event": A | {"types": ["A" * 30_000]}}, "too-large"),
    ],
)
def test_a_document_meets_the_same_checks_as_text(document: object, code: str) -> None:
    with pytest.raises(PatternRefused) as caught:
        pattern_from_json(document)
    assert caught.value.reason == code
