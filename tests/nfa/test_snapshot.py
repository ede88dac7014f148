"""Saved state: what is read back, and that bytes which are something else are refused in words."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nfa import Matcher, StateFormatError
from nfa.lanes import snapshot
from nfa.lanes.lane import Lane
from nfa.lanes.snapshot import FORMAT_VERSION, MAGIC
from nfa.lanes.state import SavedLane
from streams import Event, EventBatch

GOLDEN = Path(__file__).parent / "golden"
TEXT = "PATTERN p EVENT SEQ(A a [v > 0], B b, C c)"


def events(types: str) -> EventBatch:
    return EventBatch.from_events(
        [
            Event(id=f"{name}{i}", type=name, time_us=i, key="schlüssel", data={"v": i})
            for i, name in enumerate(types, 1)
        ]
    )


RUNS = "PATTERN r EVENT SEQ(A a, NEXT B b [v > a.v], WITHIN 9 us NOT C) SELECT ONCE PER KEY RETURN b.v AS v"


def matcher_midway() -> Matcher:
    """Both engines hold something."""
    matcher = Matcher(end_events=("End",), idle_timeout_us=1_000)
    matcher.add_pattern(TEXT, version=3)
    matcher.add_pattern(RUNS, version=2)
    matcher.process(events("ABA"))
    return matcher


def saved() -> bytes:
    return matcher_midway().dump()


@pytest.mark.parametrize("version", [3, 4, 5])
def test_state_of_this_format_and_the_one_before_is_read(version: int) -> None:
    matcher = Matcher.load((GOLDEN / f"state-v{version}.bin").read_bytes(), {})
    found = matcher.process(events("ABAC").slice(3)).matches() + matcher.finish().matches()
    assert [(match.version, match.bindings, match.start_us) for match in found] == [
        (3, {"a": ("A1",), "b": ("B2",), "c": ("C4",)}, 1)
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_state_of_an_older_format_is_refused_in_words(version: int) -> None:
    with pytest.raises(StateFormatError, match=f"has format {version}; this release reads 3, 4, 5"):
        Matcher.load((GOLDEN / f"state-v{version}.bin").read_bytes(), {})


def test_recorded_state_is_written_again_as_it_was() -> None:
    recorded = (GOLDEN / f"state-v{FORMAT_VERSION}.bin").read_bytes()
    header, arrays = snapshot.read(recorded)
    again, found = snapshot.read(Matcher.load(recorded, {}).dump())
    assert again == header
    assert {name: found[name].tolist() for name in arrays} == {name: array.tolist() for name, array in arrays.items()}


def test_a_lane_is_whatever_dumps_and_loads_itself() -> None:
    class Kept:
        def __init__(self, saved: SavedLane) -> None:
            self.saved = saved

        def dump(self) -> SavedLane:
            return self.saved

        def load(self, saved: SavedLane, patterns: object, guards: object) -> None:
            self.saved = saved

    members = {"anything": [1, "two"]}
    kept = Kept(SavedLane(members, {"some_array": np.arange(3)}))
    header = replace(snapshot.read(saved())[0], lanes=[])
    read, arrays = snapshot.read(snapshot.dump(header, {(): cast(Lane, kept)}))
    empty = Kept(SavedLane({}, {}))
    snapshot.restore(read, arrays, {(): cast(Lane, empty)}, {(): ()}, {})
    assert empty.saved.members == members
    assert {name: array.tolist() for name, array in empty.saved.arrays.items()} == {"some_array": [0, 1, 2]}


def test_dumping_what_was_loaded_gives_the_same_bytes() -> None:
    assert Matcher.load(saved(), {}).dump() == saved()


def test_free_room_is_not_saved() -> None:
    matcher = Matcher(end_events=("End",))
    matcher.add_pattern(TEXT, version=3)
    matcher.process(events("A" * 5_000 + "X"))
    large = len(matcher.dump())
    matcher.process(EventBatch.from_events([Event(id="x", type="End", time_us=9_999, key="schlüssel")]))
    fresh = Matcher(end_events=("End",))
    fresh.add_pattern(TEXT, version=3)
    assert len(matcher.dump()) <= len(fresh.dump()) + 64 < large  # counters have more digits


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda body: b"", "saved state has 0 bytes"),
        (lambda body: b"PK\x03\x04" + body[4:], "begins with b'PK"),
        (lambda body: body[:4] + b"\x09\x00" + body[6:], "has format 9; this release reads 3, 4, 5"),
        (lambda body: body[:-1], "is damaged: its checksum does not fit"),
        (lambda body: body[:60] + b"\x00\x01\x02" + body[63:], "is damaged: its checksum does not fit"),
    ],
)
def test_damaged_or_foreign_bytes_are_refused(damage: object, message: str) -> None:
    with pytest.raises(StateFormatError, match=message.replace("(", r"\(")):
        Matcher.load(damage(saved()), {})  # type: ignore[operator]


@given(st.binary(max_size=200), st.integers(0, 400))
def test_no_bytes_crash_the_loader(junk: bytes, place: int) -> None:
    good = saved()
    body = good[:place] + junk + good[place + len(junk) :]
    if body == good:
        assert Matcher.load(body, {}).dump() == good
        return
    with pytest.raises(StateFormatError):
        Matcher.load(body, {})


def sealed(body: bytes) -> bytes:
    """Bytes with a right checksum, whatever they say."""
    return MAGIC + FORMAT_VERSION.to_bytes(2, "little") + blake2b(body, digest_size=16).digest() + body


@example(1429, 69)  # a comma in the name of a type, which NumPy evaluates
@given(st.integers(0, 2_000), st.integers(1, 255))
def test_damage_under_a_right_checksum_is_refused_or_harmless(place: int, change: int) -> None:
    body = bytearray(saved()[22:])
    body[place % len(body)] ^= change
    try:
        matcher = Matcher.load(sealed(bytes(body)), {})
    except StateFormatError as refusal:
        assert "saved state" in refusal.message  # noqa: PT017 - either outcome is right
    else:
        assert matcher.process(events("ABAC").slice(3)).n_matches <= 3


@pytest.mark.parametrize("limit", [b"10.00", b"1e009"])
def test_numbers_that_are_not_whole_are_refused(limit: bytes) -> None:
    body = saved()[22:]
    assert b'"match_limit":10000,' in body
    with pytest.raises(StateFormatError, match="is not a whole number"):
        Matcher.load(sealed(body.replace(b'"match_limit":10000,', b'"match_limit":' + limit + b",")), {})


@pytest.mark.parametrize(
    ("member", "wrong", "message"),
    [
        (b'"sequence":3', b'"sequence":-3', "saved state: its sequence is -3, below 0"),
        (b'"timeouts":0', b'"other":0', "saved state: its counts are other, .*, instead of timeouts, "),
    ],
)
def test_counts_that_cannot_be_are_refused_by_name(member: bytes, wrong: bytes, message: str) -> None:
    body = saved()[22:]
    end = 4 + int.from_bytes(body[:4], "little")
    assert member in body[4:end]
    head = body[4:end].replace(member, wrong)
    with pytest.raises(StateFormatError, match=message):
        Matcher.load(sealed(len(head).to_bytes(4, "little") + head + body[end:]), {})


@pytest.mark.parametrize("body", [b"", b"\x01", b"\xff\xff\xff\xff", b"\x02\x00\x00\x00{}"])
def test_a_body_that_is_too_short_is_refused(body: bytes) -> None:
    with pytest.raises(StateFormatError, match="a right checksum and a wrong content"):
        Matcher.load(sealed(body), {})
