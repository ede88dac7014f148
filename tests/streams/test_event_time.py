"""What streams may say of event time."""

import re

import pytest

from streams import AutoLateness, DeclarationError, StreamDeclaration


def test_what_is_not_said_is_not_stored() -> None:
    plain = StreamDeclaration(name="s")
    assert not {"lateness", "late", "idle_timeout", "quiet_after", "max_ahead"} & plain.to_json().keys()
    assert (plain.lateness_us, plain.idle_timeout_us, plain.quiet_after_us) == (None, None, None)


def test_what_is_said_is_read_back() -> None:
    stream = StreamDeclaration(name="s", lateness=1.5, late="process", idle_timeout=60, quiet_after=0.25)
    assert stream.to_json().items() >= {"lateness": 1.5, "late": "process", "idle_timeout": 60}.items()
    assert StreamDeclaration.from_json(stream.to_json()) == stream
    assert (stream.lateness_us, stream.idle_timeout_us, stream.quiet_after_us) == (1_500_000, 60_000_000, 250_000)
    assert StreamDeclaration(name="s", lateness=0).lateness_us == 0


@pytest.mark.parametrize(("said", "ahead_us"), [(None, 6 * 3_600_000_000), (0, 0), (1.5, 1_500_000), ("none", None)])
def test_events_may_be_some_hours_ahead_of_the_clock_unless_the_stream_says_otherwise(
    said: object, ahead_us: int | None
) -> None:
    stream = StreamDeclaration.from_json({"name": "s", "max_ahead": said})
    assert stream.max_ahead_us == ahead_us
    assert StreamDeclaration.from_json(stream.to_json()) == stream


@pytest.mark.parametrize("value", [-1, -0.000001, float("nan"), float("inf"), 1e300, 1.7e308])
@pytest.mark.parametrize("name", ["lateness", "idle_timeout", "quiet_after", "max_ahead"])
def test_durations_are_durations(name: str, value: float) -> None:
    with pytest.raises(DeclarationError, match=re.escape(f"{name} is {value}")) as caught:
        StreamDeclaration.from_json({"name": "s", name: value})
    assert caught.value.details["field"] == name


@pytest.mark.parametrize("name", ["idle_timeout", "quiet_after"])
def test_a_timeout_takes_some_time(name: str) -> None:
    with pytest.raises(DeclarationError, match="at least a microsecond"):
        StreamDeclaration.from_json({"name": "s", name: 0})


def test_durations_may_be_written_with_their_unit() -> None:
    written = {"idle_timeout": "1.5 h", "quiet_after": "200ms", "max_ahead": "2 days", "lateness": "5 min"}
    found = StreamDeclaration.from_json({"name": "s", **written})
    assert (found.idle_timeout, found.quiet_after, found.max_ahead, found.lateness) == (5_400, 0.2, 172_800, 300)
    measured = StreamDeclaration.from_json({"name": "s", "lateness": {"auto": {"at_most": "10 min"}}})
    assert measured.lateness == AutoLateness(at_most=600)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"lateness": "5"}, "a number of seconds"),
        ({"quiet_after": True}, "a number of seconds"),
        ({"quiet_after": "none"}, "a number of seconds"),
        ({"max_ahead": "never"}, "a number of seconds"),
        ({"lateness": 1, "late": "ignore"}, "write dead_letter or drop or process"),
        ({"late": "drop"}, "no event is late"),
    ],
)
def test_the_rest_is_refused_in_words(members: dict[str, object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        StreamDeclaration.from_json({"name": "s", **members})
