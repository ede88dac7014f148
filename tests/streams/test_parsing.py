"""What the outside forms of an event share."""

from streams import Event, EventRejected, parse_each


def parse(value: object) -> Event:
    if not isinstance(value, str):
        raise EventRejected(f"{value!r} is no event")
    return Event(id=value, type="A", time_us=0, key="k")


def test_a_batch_keeps_good_and_bad_events_apart_by_index() -> None:
    parsed = parse_each(["e1", None, "e2", 3], parse)
    assert [(index, event.id) for index, event in parsed.events] == [(0, "e1"), (2, "e2")]
    assert [(index, error.message) for index, error in parsed.rejections] == [
        (1, "None is no event"),
        (3, "3 is no event"),
    ]


def test_an_empty_batch_has_neither() -> None:
    parsed = parse_each([], parse)
    assert (parsed.events, parsed.rejections) == ((), ())
