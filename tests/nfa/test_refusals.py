"""Every code of refusal: where it points and what it advises."""

from __future__ import annotations

import pytest

from nfa.errors import PatternRefused
from nfa.language.parsing import parse_pattern
from nfa.language.stream_checks import Notice, check_stream, warnings_of
from nfa.syntax import Position


def refused(text: str) -> PatternRefused:
    with pytest.raises(PatternRefused) as caught:
        parse_pattern(text)
    return caught.value


# (what follows EVENT, code, column in that text from 1, a part of the advice)
REFUSALS = [
    ("SEQ(A a, NEXT)", "syntax", 14, "expected '_', NOT, SEQ(, AND( or OR( or a name"),
    ("A [v > 1e999]", "syntax", 8, "larger than a float64 can hold; write a smaller one"),
    ("A LIMIT 0", "syntax", 3, "LIMIT needs a number from 1"),
    ("SEQ(A a, B|`_` b)", "syntax", 10, "_ means any type"),
    ("A WITHIN 0 s", "duration", 10, "is not a positive whole number of microseconds"),
    ("A WITHIN 0.5 us", "duration", 10, "write for example 5 min"),
    ("A WITHIN 9999999999999 weeks", "duration", 10, "up to 2^62"),
    ("A WITHIN 1e99 s", "duration", 10, "positive whole number"),
    ("A [v > 0 s]", "duration", 8, "positive whole number"),
    ("A WITHIN 1 s LIMIT 2 WITHIN 2 s", "duplicate-clause", 22, "(first in line 2, column 9); join the two into one"),
    ("A WHERE [k] WHERE A.v = 1", "duplicate-clause", 13, "WHERE is given a second time"),
    ("SEQ(A, A)", "duplicate-alias", 8, "give this step another, such as A A2"),
    ("SEQ(A a, AND(B b, OR(C c, D a)))", "duplicate-alias", 27, "such as D a2"),
    ("SEQ(A a, NOT N a, B b)", "duplicate-alias", 14, "the alias a is taken by another step"),
    ("SEQ(A a, A a2, B b, A a)", "duplicate-alias", 21, "such as A a3"),
    ("SEQ(A a, B+ b UNTIL U a)", "duplicate-alias", 21, "such as U a2"),
    ("A RETURN A.v AS x, A.w AS x", "duplicate-alias", 3, "give one another name with AS"),
    ("A a WHERE v = 1", "unknown-alias", 11, "write one of a, a dot and the attribute"),
    ("A a WHERE b.v = 1", "unknown-alias", 11, "b is not an alias that is known here"),
    ("SEQ(A a, NOT N n, B b) WHERE n.v = 1", "unknown-alias", 30, "exists only inside its own brackets"),
    ("SEQ(A a, NOT N n, B b [v = n.v])", "unknown-alias", 28, "n names a step after NOT or UNTIL"),
    ("A a [time(v) > 3]", "unknown-alias", 11, "write one of a"),
    ("A a RETURN count(v)", "unknown-alias", 18, "write one of a, a dot"),
    ("A a SELECT SKIP TO FIRST b", "unknown-alias", 5, "b is not an alias of a step; skip to one of a"),
    ("A a [len(v) > 3]", "unknown-function", 6, "len is not a function (did you mean length?)"),
    ("A a [time(a) > '2026-01-01']", "function", 6, "always null; write timestamp('2026-01-01')"),
    ("A a [time(a) = type(a)]", "function", 6, "comparing them is always null; compare values of one kind"),
    ("A a [median(v) > 3]", "unknown-function", 6, "use one of abs, add_business_days, add_business_time, any, avg"),
    ("SEQ(A a [v > b.v], B b)", "not-yet-bound", 14, "move the condition to b or to WHERE"),
    ("AND(A a, B b [v > a.v])", "not-yet-bound", 19, "which is not bound before this step"),
    ("OR(A a, B b [v > a.v])", "not-yet-bound", 18, "move the condition to a or to WHERE"),
    ("SEQ(NOT N [v = a.v], A a)", "not-yet-bound", 16, "a.v refers to the step a"),
    ("SEQ(A+ a UNTIL U [v > a.v], B b)", "not-yet-bound", 23, "a.v refers to the step a"),
    ("SEQ(A a [v > sum(b.v)], B b)", "not-yet-bound", 18, "b.v refers to the step b"),
    ("SEQ(A a [v > b.v], B b){2}", "not-yet-bound", 14, "or last(b.v) for the iterations before"),
    ("SEQ(A+ a, B b [v > a.v])", "group-alias", 20, "choose one with first(a.v), last(a.v)"),
    ("SEQ(SEQ(A a, B b){2}, C c [time(b) > 3])", "group-alias", 33, "b is repeated"),
    ("SEQ(A{0,1} a, B* b) WHERE a.v = b.v", "group-alias", 33, "choose one with first(b.v)"),
    ("A a WHERE prev(a.v) = 1", "prev", 11, "only be used in the brackets of a step, not in WHERE"),
    ("SEQ(A a, NOT N [prev(v) = 1], B b)", "prev", 17, "after NOT or UNTIL"),
    ("SEQ(A a, B b [prev(a.v) = 1])", "prev", 20, "a.v is of the step a; write last(a.v)"),
    ("A a [prev(prev(v)) IS NULL]", "prev", 11, "prev is inside prev"),
    ("A a [sum(prev(v)) > 1]", "prev", 10, "prev is inside aggregate; call it outside"),
    ("A a [prev(1) = 1]", "prev", 6, "name one, as in prev(v)"),
    ("A a [prev(v, w) = 1]", "prev", 6, "call it once per expression"),
    ("SEQ(A a, B b) WHERE a > 3", "bare-alias", 21, "write an attribute as a.name, or use count(a)"),
    ("SEQ(A a, B b [a = 3])", "bare-alias", 15, "is an event, not a value"),
    ("A a [first(a) = 3]", "bare-alias", 12, "write an attribute as a.name"),
    ("A a RETURN time(a.v)", "bare-alias", 12, "time takes only the alias of a step, as in time(a)"),
    ("SEQ(A a, B b) RETURN id(a, b)", "bare-alias", 22, "as in id(a)"),
    ("A+ a WHERE sum(max(a.v)) > 3", "aggregate", 16, "aggregates cannot be nested"),
    ("A+ a [coalesce(prev(sum(v)), 0) < 3]", "aggregate", 21, "inside another aggregate or prev"),
    ("SEQ(A a, B b) WHERE sum(a.v + b.v) > 3", "aggregate", 21, "a or b are mixed; name one alias"),
    ("A a WHERE sum(1) > 3", "aggregate", 11, "it names none; name one alias"),
    (
        "A a WHERE sum(a.v, a.w) > 3",
        "function",
        20,
        "names in the last argument of sum are of the elements",
    ),
    ("A+ a [v > prev(a.v)]", "never-true", 11, "as in coalesce(prev(v), 0)"),
    ("A+ a [v = 1 AND prev(v) + 1 < v]", "never-true", 17, "prev is null for the first event"),
    ("A+ a [prev(v) IS NOT NULL]", "never-true", 7, "can never become true"),
    ("A+ a [NOT prev(v) IN (1, 2) OR prev(v) LIKE 'a']", "never-true", 11, "prev(v) IS NULL OR"),
    ("SEQ(A a, NOT SEQ(B b), C c)", "not-operand", 14, "write one NOT per step"),
    ("SEQ(A a, NOT B+ b, C c)", "not-operand", 15, "has no quantifier, EACH, UNTIL or GREEDY"),
    ("SEQ(A a, NOT B GREEDY, C c)", "not-operand", 16, "NOT alone means that none occurs"),
    ("AND(A a, NOT B)", "not-placement", 10, "put it into a SEQ, before or after the AND"),
    ("OR(NOT A, B)", "not-placement", 4, "not directly in OR"),
    ("AND(SEQ(A a, NOT B), C c)", "not-placement", 14, "NOT B is at the edge of a part of AND"),
    ("AND(SEQ(NOT B, A a), C c)", "not-placement", 9, "put it between two steps of that part"),
    ("AND(SEQ(A? a, NOT B, D d), C c)", "not-placement", 15, "two steps of that part that always occur"),
    ("AND(OR(X x, SEQ(D d, SEQ(A a, NOT B)+)), C c)", "not-placement", 31, "at the edge of a part of AND"),
    ("SEQ(X x, SEQ(A a, NOT B) WITHIN 3 s, Y y)", "not-placement", 19, "at the edge of a part with WITHIN"),
    ("SEQ(X x, OR(SEQ(A a, NOT B, C? c), D d) WITHIN 3 s)", "not-placement", 22, "or outside the part"),
    ("SEQ(NEXT A a, B b)", "gap-placement", 5, "write the prefix before the SEQ"),
    ("SEQ(X x, SEQ(WITHIN 3 s A a, B b))", "gap-placement", 14, "the first step of a SEQ has no gap before it"),
    ("SEQ(WITHIN 3 s NOT N, A a)", "gap-placement", 5, "or remove it"),
    ("SEQ(NOT N, STRICT A a)", "gap-placement", 12, "if it follows another step"),
    ("AND(A a, NEXT B b)", "gap-placement", 10, "write ANY, NEXT, STRICT or WITHIN before the AND"),
    ("OR(STRICT A a, B b)", "gap-placement", 4, "the parts of OR have no gap before them"),
    ("SEQ(A a, ANY NOT B, C c)", "gap-placement", 10, "ANY NOT has no meaning; write NOT for the whole gap"),
    ("SEQ(A a, NEXT NOT B, C c)", "gap-placement", 10, "or STRICT NOT for the next event only"),
    ("SEQ(A a, STRICT NOT B)", "gap-placement", 10, "write NOT, or add a step"),
    ("SEQ(A a, STRICT NOT B, C? c, NOT D)", "gap-placement", 10, "no step always follows"),
    ("A GREEDY", "needs-quantifier", 3, "write a quantifier before it, such as A+"),
    ("SEQ(A a EACH NEXT, B b)", "needs-quantifier", 9, "EACH applies to a repetition"),
    ("SEQ(A a, B b) UNTIL U", "needs-quantifier", 15, "such as SEQ(…)+"),
    ("A{3,2} a", "quantifier", 2, "write {2,3}"),
    ("A{0} a", "quantifier", 2, "leave the step out"),
    ("A{0,0} a", "quantifier", 2, "repeats the step not at all"),
    ("SEQ(A? a, B* b)+", "nullable-repeat", 16, "make one of its steps required"),
    ("SEQ(X x, OR(A a, B? b){2})", "nullable-repeat", 23, "the body of a repetition must match at least one event"),
    ("SEQ(A a)+ GREEDY", "greedy-group", 9, "write it after the quantifier of a step"),
    ("AND(A+ a GREEDY, B b)", "greedy-placement", 6, "add a step that always occurs after it in that part"),
    ("SEQ(X x, SEQ(A a, B+ b GREEDY, C? c) WITHIN 3 s)", "greedy-placement", 20, "the end of a part with WITHIN"),
    ("SEQ(NOT A)", "no-positive-step", 5, "add a step that must occur"),
    ("SEQ(A a, SEQ(NOT B, NOT C), D d)", "no-positive-step", 14, "every step of this SEQ is negated"),
    ("A EMIT TIMEOUTS", "needs-within", 3, "add it, such as WITHIN 1 h"),
    ("A{1001}", "too-large", 2, "at most 1000 repetitions"),
    ("A{99999999999999999999999999,}", "too-large", 2, "at most 1000 repetitions"),
    (f"A{{1{'0' * 5000}}}", "too-large", 2, "at most 1000 repetitions"),
    ("A LIMIT 99999999999", "too-large", 3, "LIMIT needs a number from 1 to 1000000000"),
    (f"SEQ({', '.join(f'A a{n}' for n in range(64))}, NOT N)", "too-large", 447, "more than 64 steps"),
    ("SEQ(" * 51 + "A" + ")" * 51, "too-large", 204, "nest deeper than 50"),
    ("A [" + "NOT " * 50 + "v]", "too-large", 200, "use fewer"),
    ("A [v = 1" + " + 1" * 50 + "]", "too-large", 206, "arithmetic and CASE nest deeper than 50"),
    ("A [v = " + "- " * 50 + "1]", "too-large", 106, "nest deeper than 50"),
]


@pytest.mark.parametrize(("text", "code", "column", "advice"), REFUSALS)
def test_refusals_name_code_place_and_advice(text: str, code: str, column: int, advice: str) -> None:
    lead = "PATTERN p -- of a test\nEVENT "
    error = refused(lead + text)
    expected = 6 + column
    assert (error.reason, error.position) == (code, Position(2, expected))
    assert str(error).startswith(f"line 2, column {expected}: ")
    assert advice in str(error)


def test_every_code_is_shown() -> None:
    codes = """syntax duration duplicate-clause duplicate-alias unknown-alias unknown-function not-yet-bound group-alias
    prev bare-alias aggregate never-true not-operand not-placement gap-placement needs-quantifier quantifier
    nullable-repeat greedy-group greedy-placement no-positive-step needs-within too-large function"""
    assert {code for _, code, _, _ in REFUSALS} == set(codes.split())


ACCEPTED = [
    "SEQ(A a, NOT A [v = a.v], B b)",  # a type's name is no second alias
    "OR(A a, SEQ(B b, A a [v > b.v]))",
    "SEQ(A a [sum(b.v) < 3], B b){2}",
    "SEQ(A+ a, B b [v > last(a.v)])",
    "SEQ(A? a, B b [v > a.v])",
    "A+ a [v > coalesce(prev(a.v), 0)]",
    "A+ a [prev(v) IS NULL OR v > prev(v)]",
    "A+ a [sum(v) > 3 OR prev(v) > count(a)]",
    "A+ a [NOT (prev(v) > 3 AND FALSE)]",
    "A+ a [NOT (prev(v) IS NOT NULL AND v > 3)]",
    "A+ a [time(a) - coalesce(prev(time(a)), 0) > 5 s]",
    "A+ a [coalesce(prev(v) > 3, TRUE)]",
    "A+ a [a.v > 3 AND count(a) < 3]",
    "SEQ(A a, SEQ(B b, NOT C)+, D d)",
    "SEQ(A a, SEQ(NOT C, B b), D d)",
    "OR(SEQ(A a, NOT B), SEQ(NOT B, C c))",
    "SEQ(A a, STRICT NOT B, C? c, D d)",
    "SEQ(A? a, NEXT B b)",
    "SEQ(AND(SEQ(A a, NOT N, B b), C+ c EACH NEXT), D+ d GREEDY)",
    "A* a",
    "SEQ(A a, B b) WHERE a.v > b.v AND count(a) = 1 RETURN a.v + 1 AS n, max(b.v)",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_neighbours_of_the_refused_are_read(text: str) -> None:
    assert parse_pattern(f"PATTERN p EVENT {text}").name == "p"


@pytest.mark.parametrize(
    ("text", "column", "advice"),
    [
        ("SEQ(A a, NOT B)", 26, "add WITHIN before the NOT, or as a clause"),
        ("SEQ(A a, NOT B, C? c)", 26, "NOT at the end of the pattern holds until the trace ends"),
        ("SEQ(A a, OR(B b, SEQ(C c, NOT D)))", 43, "traces never do"),
        ("SEQ(A a, B+ b GREEDY)", 27, "add the clause WITHIN"),
    ],
)
def test_an_open_end_needs_an_end_of_trace(text: str, column: int, advice: str) -> None:
    pattern = parse_pattern(f"PATTERN p EVENT {text}")
    with pytest.raises(PatternRefused) as caught:
        check_stream(pattern, has_trace_end=False)
    assert (caught.value.reason, caught.value.position) == ("needs-end", Position(1, column))
    assert advice in str(caught.value)
    check_stream(pattern, has_trace_end=True)
    check_stream(parse_pattern(f"PATTERN p EVENT {text} WITHIN 1 s"), has_trace_end=False)


@pytest.mark.parametrize("text", ["SEQ(A a, WITHIN 2 s NOT B)", "SEQ(A a, NOT B, C c)", "A{2} a GREEDY"])
def test_other_ends_need_none(text: str) -> None:
    pattern = parse_pattern(f"PATTERN p EVENT {text}")
    check_stream(pattern, has_trace_end=False)
    assert pattern.within_us is None


def notices(text: str, *, has_trace_end: bool = True) -> list[tuple[str, int]]:
    found = warnings_of(parse_pattern(f"PATTERN p EVENT {text}"), has_trace_end=has_trace_end)
    assert all(isinstance(notice, Notice) and notice.message for notice in found)
    return [(notice.code, notice.position.column) for notice in found]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("SEQ(A a, B+ b)", [("unbounded-repetition", 27)]),
        ("SEQ(A a, B+ b EACH ANY) SELECT NEXT", [("unbounded-repetition", 27)]),
        ("SEQ(A a, B+ b EACH NEXT)", []),
        ("SEQ(A a, B+ b) SELECT NEXT", []),
        ("SEQ(A a, B{1,5} b)", []),
        ("SEQ(A a, B+ b) WITHIN 5 s", []),
        ("SEQ(A a, SEQ(B+ b, C c) WITHIN 5 s)", []),
        ("SEQ(A a, B b) WHERE a.v = b.v AND b.v > 3", [("where-of-one-step", 51)]),
        ("SEQ(A a, B b) WHERE a.v > 3", [("where-of-one-step", 37)]),
        ("SEQ(A a, B b [key != a.key OR b.v = 3])", [("constant-key", 31)]),
        ("SEQ(A a, NOT C [key = a.key], B b) WHERE key(a) <= b.key", [("constant-key", 33), ("constant-key", 58)]),
        ("SEQ(A a, B b [key = 'k' AND `key` != a.`key` AND a.key = b.v])", []),
        ("SEQ(A a, B+ b EACH NEXT) WHERE count(b) > 3 AND 1 = 1", []),
    ],
)
def test_warnings(text: str, codes: list[tuple[str, int]]) -> None:
    assert notices(text) == codes


def test_no_within_without_an_end_of_trace_is_a_warning() -> None:
    assert notices("SEQ(A a, B b)", has_trace_end=False) == [("no-within", 21)]
    assert notices("SEQ(A a, B b) WITHIN 1 s", has_trace_end=False) == []


@pytest.mark.parametrize(
    ("text", "is_warned"),
    [
        ("A a", False),
        ("A|B a [v > 3]", False),
        ("OR(A a, B b)", False),
        ("SEQ(NOT B, A a)", False),
        ("SEQ(A a, WITHIN 1 h B b)", False),
        ("SEQ(A a, NOT C, WITHIN 1 h B b)", False),
        ("SEQ(A a, WITHIN 1 h NOT B)", False),
        ("OR(A a, SEQ(B b, C c))", True),
        ("SEQ(A a, WITHIN 1 h B b, NOT D, C c)", True),
        ("SEQ(A a, WITHIN 1 h B{2} b)", True),
        ("A{2} a", True),
        ("AND(A a, B b)", True),
    ],
)
def test_no_within_is_a_warning_only_where_partial_matches_may_wait(text: str, is_warned: bool) -> None:
    assert [code for code, _ in notices(text, has_trace_end=False)] == ["no-within"] * is_warned
