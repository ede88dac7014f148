"""Functions equal references that are written another way, on random values: nulls, odd texts, huge numbers, zones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from ipaddress import IPv4Address, IPv4Network
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfa import FUNCTIONS, Matcher, columns_of_events, parse_combined, parse_event_expression, parse_pattern
from nfa.conditions.bytecode import _APPLIED
from nfa.conditions.projection import project
from nfa.functions.lookups import OF_CALENDARS
from nfa.syntax import Column
from streams import EARLIEST_US, LATEST_US, Event, EventBatch
from tests.references.patterns.values import DataScope, value_of

Forms: TypeAlias = dict[str, tuple[Callable[..., Any], list[st.SearchStrategy[Any]]]]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Monrovia",
    "+05:45",
]
CHANGES = [
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(1883, 11, 18, tzinfo=UTC),
]

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.text(st.sampled_from("aAbB %_-ßİıſǅΣς\u0301é\U0001f600\uffff\u00a0\u2028"), max_size=6),
)
numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-20, 20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.5, -0.5, 1.5, 2.5, 0.49999999999999994, 1e308, -1e308, 5e-324, 2**53 + 1, -0.0]),
)
degrees = st.one_of(st.floats(-180, 180), st.sampled_from([0, 90, -90, 180, -180, 91, 181]))
moments = st.one_of(
    st.integers(EARLIEST_US, LATEST_US),
    st.integers(-(2**63), 2**63 - 1),
    st.builds(
        lambda change, seconds: (change - EPOCH) // timedelta(microseconds=1) + seconds * 1_000_000,
        st.sampled_from(CHANGES),
        st.integers(-7300, 7300),
    ),
)
others = st.one_of(st.none(), st.booleans(), st.just([1]), st.just({"x": 1}))


def finite(number):
    return number if number is not None and math.isfinite(number) else None


def quietly(function):
    """A function of float64 numbers that is null where Python raises."""

    def value(*arguments):
        try:
            found = function(*map(float, arguments))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return None if isinstance(found, complex) else finite(found)

    return value


def rounded(x):
    return float(Decimal(x).quantize(Decimal(1), ROUND_HALF_UP)) if abs(x) < 2**52 else x


def part(text, start, length):
    if start != int(start) or length != int(length) or start == 0 or length < 0:
        return None
    characters = list(text)
    first = start - 1 if start > 0 else max(len(characters) + start, 0)
    return "".join(characters[int(first) :][: int(length)])


def great_circle(lat, lon, other_lat, other_lon):
    """The distance by vectors, in place of angles."""
    if max(abs(lat), abs(other_lat)) > 90 or max(abs(lon), abs(other_lon)) > 180:
        return None
    places = [
        (
            math.cos(math.radians(a)) * math.cos(math.radians(b)),
            math.cos(math.radians(a)) * math.sin(math.radians(b)),
            math.sin(math.radians(a)),
        )
        for a, b in ((lat, lon), (other_lat, other_lon))
    ]
    return 6371.0088 * 2 * math.asin(min(1.0, math.dist(*places) / 2))


def of_clock(read):
    def value(moment_us, zone):
        if not EARLIEST_US <= moment_us <= LATEST_US:
            return None
        where = zone if zone.startswith("+") else ZoneInfo(zone)
        if zone.startswith("+"):
            where = datetime.strptime(zone, "%z").tzinfo
        try:
            return read((EPOCH + timedelta(microseconds=moment_us)).astimezone(where))
        except OverflowError:
            return None

    return value


TEXTS: Forms = {
    "lower({})": (str.lower, [texts]),
    "upper({})": (str.upper, [texts]),
    "trim({})": (str.strip, [texts]),
    "length({})": (len, [texts]),
    "concat({}, {}, '-')": (lambda a, b: a + b + "-", [texts, texts]),
    "contains({}, {})": (lambda a, b: a.find(b) >= 0, [texts, texts]),
    "starts_with({}, {})": (lambda a, b: a[: len(b)] == b, [texts, texts]),
    "ends_with({}, {})": (lambda a, b: not b or a[-len(b) :] == b, [texts, texts]),
    "substr({}, {}, {})": (part, [texts, st.integers(-8, 8), st.integers(-1, 8)]),
    "matches({}, '^[ab]+_?$')": (lambda a: re.search(r"^[ab]+_?\Z", a) is not None, [texts]),
    "matches({}, 'a.b')": (lambda a: re.search("a[^\n]b", a) is not None, [texts]),
    "cidr({}, '10.0.0.0/9')": (
        lambda a: IPv4Address(a) in IPv4Network("10.0.0.0/9"),
        [st.builds(lambda number: str(IPv4Address(number)), st.integers(9 << 24, 12 << 24))],
    ),
}
NUMBERS: Forms = {
    "abs({})": (quietly(abs), [numbers]),
    "floor({})": (quietly(lambda x: x if abs(x) > 2**53 else float(math.floor(x))), [numbers]),
    "ceil({})": (quietly(lambda x: x if abs(x) > 2**53 else float(math.ceil(x))), [numbers]),
    "round({})": (quietly(rounded), [numbers]),
    "sqrt({})": (quietly(math.sqrt), [numbers]),
    "ln({})": (quietly(math.log), [numbers]),
    "pow({}, {})": (quietly(math.pow), [numbers, st.one_of(numbers, st.integers(-3, 3))]),
    "mod({}, {})": (quietly(math.fmod), [numbers, numbers]),
    "least({}, {}, {})": (quietly(min), [numbers, numbers, numbers]),
    "greatest({}, {})": (quietly(max), [numbers, numbers]),
    "distance({}, {}, {}, {})": (quietly(great_circle), [degrees] * 4),
    "IF({} > {}, {}, {})": (lambda a, b, x, y: x if float(a) > float(b) else y, [st.integers(-9, 9)] * 4),
    "{} BETWEEN {} AND {}": (lambda a, b, c: b <= a <= c, [st.integers(-3, 3)] * 3),
    "{} NOT BETWEEN {} AND {}": (lambda a, b, c: not b <= a <= c, [st.integers(-3, 3)] * 3),
}
CLOCKS = {
    "year": of_clock(lambda shown: shown.year),
    "month": of_clock(lambda shown: shown.month),
    "day": of_clock(lambda shown: shown.day),
    "hour": of_clock(lambda shown: shown.hour),
    "minute": of_clock(lambda shown: shown.minute),
    "second": of_clock(lambda shown: shown.second),
    "weekday": of_clock(lambda shown: shown.isoweekday()),
    "date": of_clock(lambda shown: f"{shown.year:04}-{shown.month:02}-{shown.day:02}"),
}
NOT_STRICT = ("IF", "{} ")


def event(number, data, kind="A"):
    return Event(id=f"{kind}{number}", type=kind, time_us=number, key="k", data=data)


def column(text, rows):
    batch = EventBatch.from_events([event(number, row) for number, row in enumerate(rows)])
    return parse_event_expression(text).column(columns_of_events(batch), np.arange(len(rows)))


def same(found, wanted):
    if isinstance(wanted, float) and isinstance(found, float):
        return found == pytest.approx(wanted, rel=1e-12, abs=1e-6)
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)


def check_rows(text, reference, rows, names, *, is_strict):
    found = column(text, rows)
    for row, value in zip(rows, found, strict=True):
        arguments = [row.get(name) for name in names]
        if any(one is None or isinstance(one, list | dict | bool) for one in arguments):
            assert value is None or not is_strict, (text, row, value)
        else:
            assert same(value, reference(*arguments)), (text, row, value, reference(*arguments))
    for row, value in zip(rows, found, strict=True):  # as of one event, and in RETURN
        assert column(text, [row]) == [value]
        of_step = re.sub(r"\b(v[0-9]*)\b", r"a.\1", text)
        returned = parse_pattern(f"PATTERN p EVENT A a RETURN ({of_step}) AS x")
        assert project(returned.returns, [{"a": [event(0, row)]}]) == [{"x": value}]


@pytest.mark.parametrize("form", [*TEXTS, *NUMBERS])
@settings(max_examples=30)
@given(data=st.data())
def test_values_equal_the_reference(form, data):
    reference, strategies = {**TEXTS, **NUMBERS}[form]
    names = [f"v{place}" for place in range(len(strategies))]
    fields = {name: st.one_of(*[one] * 8, others) for name, one in zip(names, strategies, strict=True)}
    rows = data.draw(st.lists(st.fixed_dictionaries({}, optional=fields), min_size=1, max_size=12))
    check_rows(form.format(*names), reference, rows, names, is_strict=not form.startswith(NOT_STRICT))


@pytest.mark.parametrize("name", CLOCKS)
@settings(max_examples=40)
@given(data=st.data())
def test_clocks_equal_the_reference(name, data):
    zone = data.draw(st.sampled_from(ZONES))
    rows = data.draw(st.lists(st.fixed_dictionaries({"v": st.one_of(*[moments] * 8, others)}), min_size=1, max_size=12))
    check_rows(f"{name}(v, '{zone}')", lambda moment: CLOCKS[name](moment, zone), rows, ["v"], is_strict=True)


@settings(max_examples=60)
@given(st.sampled_from(ZONES[:-1]), st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)))
def test_texts_without_a_zone_are_of_clocks_there(zone, moment):
    text, where = moment.replace(microsecond=0).isoformat(), ZoneInfo(zone)
    first = moment.replace(microsecond=0, tzinfo=where, fold=0)
    found = column(f"timestamp(v, '{zone}')", [{"v": text}, {"v": "2026-02-30"}, {"v": "soon"}])
    offsets = {first.replace(fold=fold).utcoffset() for fold in (0, 1)}
    wall = (first.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    assert found[0] in {wall - offset // timedelta(microseconds=1) for offset in offsets}
    assert found[1:] == [None, None]
    if len(offsets) == 1:
        assert column(f"date(v, '{zone}')", [{"v": text}]) == [text[:10]]


def test_every_function_has_a_reference():
    named = " ".join(
        [
            *TEXTS,
            *NUMBERS,
            *(f"{name}(" for name in CLOCKS),
            "timestamp(",
            "any(",
            "sum_of(",
            "coalesce(",
            "if(",
            "between(",
        ]
    )
    apart = {name for name in FUNCTIONS if f"{name}(" not in named}  # have tests of their own
    assert apart == {"lookup", "in_table", *(one.name for one in OF_CALENDARS)}


def test_functions_between_events_have_an_instruction():
    assert {name for name, one in FUNCTIONS.items() if one.spans_events} - {"coalesce"} == set(_APPLIED)


@pytest.mark.parametrize("form", NUMBERS)
@settings(max_examples=100)
@given(data=st.data())
def test_between_events_the_kernel_equals_joins(form, data):
    _, strategies = NUMBERS[form]
    names = [f"{'ab'[place % 2]}.v{place}" for place in range(len(strategies))]
    if len(names) == 1:
        names = ["a.v0 + b.v0"]
    text = form.format(*names)
    fields = {f"v{place}": st.one_of(*[one] * 6, others) for place, one in enumerate(strategies)}
    rows = data.draw(st.lists(st.fixed_dictionaries({}, optional=fields), min_size=2, max_size=5))
    limit = data.draw(st.integers(-3, 9))
    condition = text if form.startswith("{}") else f"{text} > {limit} OR {text} IS NULL"
    matcher = Matcher()
    matcher.add_pattern(f"PATTERN p EVENT SEQ(A a, B b [{condition}])")
    events = [event(number, row, "AB"[number % 2]) for number, row in enumerate(rows)]
    output = matcher.process(EventBatch.from_events(events))
    found = {
        (match.bindings["a"][0], match.bindings["b"][0]) for match in (*output.matches(), *matcher.finish().matches())
    }
    pattern = parse_pattern(f"PATTERN p EVENT SEQ(A a, B b) RETURN ({condition}) AS x")
    wanted = {
        (one.id, other.id)
        for place, one in enumerate(events)
        for other in events[place + 1 :]
        if (one.type, other.type) == ("A", "B")
        and project(pattern.returns, [{"a": [one], "b": [other]}]) == [{"x": True}]
    }
    assert found == wanted


elements = st.one_of(
    st.fixed_dictionaries({}, optional={"v": st.one_of(st.integers(-3, 3), st.sampled_from(["", "a", None, True]))}),
    st.integers(-3, 3),
    others,
)


@settings(max_examples=100)
@given(
    st.sampled_from(
        ["any(x, v > 0)", "sum(x, v + 1)", "sum(x, value)", "any(x, v IS NULL)", "any(x, any(v, value = 1))"]
    ),
    st.lists(st.one_of(st.lists(elements, max_size=3), others, st.lists(elements, min_size=2, max_size=2)), min_size=1),
)
def test_lists_equal_the_reference(text, lists):
    rows = [{"x": one} for one in lists]
    expression = parse_pattern(f"PATTERN p EVENT A a RETURN {text.replace('(x', '(a.x')} AS x").returns[0].expression
    wanted = [value_of(expression, DataScope(plain={"a": event(0, row)})) for row in rows]
    assert column(text, rows) == wanted
    assert [one["x"] for one in project([Column(expression, "x")], [{"a": [event(0, row)]} for row in rows])] == wanted


def test_surrogates_which_only_constants_can_have():
    assert column("upper('a\ud800') = 'A\ud800'", [{}]) == [True]
    assert column("matches('a\ud800b', 'a.b')", [{}]) == [True]


def test_joins_read_functions_of_all_their_inputs():
    parsed = parse_combined("distance(a.lat, a.lon, b.lat, b.lon) < 600 AND contains(a.name, b.name)", ["a", "b"])
    values: dict[str, list[Any]] = {"lat": [52.5, 48.1], "lon": [13.4, 11.6], "name": ["Berlin", "lin"]}
    read = [(values[one.path[0]], np.array(["ab".index(one.alias)], np.intp)) for one in parsed.reads]
    assert parsed.holds(read, 1).tolist() == [True]
