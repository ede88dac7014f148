"""XES logs, written by hand."""

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import EventFileError
from streams.event import Event
from streams.readers import ReaderOptions, read_events
from streams.timestamps import format_time
from tests.builders.streams import texts

OPEN_LOG = '<?xml version="1.0"?><log xmlns="http://www.xes-standard.org/"><global scope="event"/>'


def attribute(kind: str, key: str, value: str) -> str:
    """One XES attribute."""
    return f"<{kind} key={quoteattr(key)} value={quoteattr(value)}/>"


def event(name: str | None, time: str | None, *more: str) -> str:
    """One XES event; None leaves a part out."""
    parts = [] if name is None else [attribute("string", "concept:name", name)]
    parts += [] if time is None else [attribute("date", "time:timestamp", time)]
    return f"<event>{''.join([*parts, *more])}</event>"


def trace(case: str | None, *events: str) -> str:
    """One XES trace; None leaves its name out."""
    name = "" if case is None else attribute("string", "concept:name", case)
    return f"<trace>{name}{''.join(events)}</trace>"


def write(folder: Path, *traces: str, head: str = OPEN_LOG) -> Path:
    """A log of some traces."""
    path = folder / "log.xes"
    path.write_text(f"{head}{''.join(traces)}</log>", encoding="utf-8")
    return path


NOON = "1970-01-01T12:00:00.000+01:00"
LATER = "1970-01-01T12:00:01.000Z"


def test_events_of_all_traces_come_by_time_and_ties_in_file_order(tmp_path: Path) -> None:
    path = write(tmp_path, trace("c1", event("A", LATER), event("B", NOON)), trace("c2", event("C", NOON)))
    read = [(one.id, one.type, one.key, one.time_us) for one in read_events(path)]
    assert read == [
        ("c1:2", "B", "c1", 39_600_000_000),
        ("c2:1", "C", "c2", 39_600_000_000),
        ("c1:1", "A", "c1", 43_201_000_000),
    ]


def test_scalar_attributes_are_typed_and_others_left_out(tmp_path: Path) -> None:
    more = (
        attribute("string", "org:resource", "Åse & <co>"),
        attribute("int", "count", "-7"),
        attribute("float", "amount", "31.5"),
        attribute("float", "ratio", "NaN"),
        attribute("boolean", "paid", "true"),
        attribute("boolean", "sent", "0"),
        attribute("id", "identity", "0f8a"),
        attribute("date", "due", "2026-01-01T01:00:00+01:00"),
        attribute("date", "guess", "2026-01-01"),
        '<string key="nested" value="outer"><string key="inner" value="lost"/></string>',
        '<list key="many"><string key="one" value="1"/></list>',
        '<container key="box"><int key="two" value="2"/></container>',
    )
    (read,) = read_events(write(tmp_path, trace("c1", event("A", NOON, *more))))
    assert read.data == {
        "concept:name": "A",
        "time:timestamp": "1970-01-01T11:00:00.000000Z",
        "org:resource": "Åse & <co>",
        "count": -7,
        "amount": 31.5,
        "ratio": None,
        "paid": True,
        "sent": False,
        "identity": "0f8a",
        "due": "2026-01-01T00:00:00.000000Z",
        "guess": "2026-01-01",
        "nested": "outer",
    }


def test_traces_of_one_name_are_one_case_and_its_count_goes_on(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        trace("c", event("A", NOON), event("B", NOON)),
        trace("d", event("X", NOON)),
        trace("c", event("C", NOON)),
    )
    assert [(one.id, one.key) for one in read_events(path)] == [("c:1", "c"), ("c:2", "c"), ("d:1", "d"), ("c:3", "c")]


def test_the_lifecycle_option_tells_transitions_apart(tmp_path: Path) -> None:
    start = attribute("string", "lifecycle:transition", "start")
    path = write(tmp_path, trace("c", event("A", NOON, start), event("B", NOON)))
    assert [one.type for one in read_events(path)] == ["A", "B"]
    assert [one.type for one in read_events(path, ReaderOptions(lifecycle=True))] == ["A+start", "B"]


@pytest.mark.parametrize("option", ["org:resource", "data.org:resource"])
def test_the_key_option_names_an_event_attribute(tmp_path: Path, option: str) -> None:
    path = write(tmp_path, trace("c", event("A", NOON, attribute("string", "org:resource", "Pete"))))
    (read,) = read_events(path, ReaderOptions(key=option))
    assert (read.id, read.key) == ("c:1", "Pete")


def test_the_name_of_a_trace_may_follow_its_events(tmp_path: Path) -> None:
    path = write(tmp_path, f"<trace>{event('A', NOON)}{attribute('string', 'concept:name', 'late')}</trace>")
    assert [one.key for one in read_events(path)] == ["late"]


@pytest.mark.parametrize("head", ["<log>", '<x:log xmlns:x="urn:any">'])
def test_namespaces_do_not_matter(tmp_path: Path, head: str) -> None:
    path = write(tmp_path, trace("c", event("A", NOON)), head=head)
    if head.startswith("<x:"):
        path.write_text(path.read_text().replace("</log>", "</x:log>").replace("<trace>", '<trace xmlns="urn:other">'))
    assert [one.type for one in read_events(path)] == ["A"]


def test_logs_without_times_are_refused_with_advice_or_read_in_file_order(tmp_path: Path) -> None:
    path = write(tmp_path, trace("c", event("A", None), event("B", None)), trace("d", event("C", None)))
    with pytest.raises(EventFileError) as caught:
        read_events(path)
    assert "trace 1 ('c'), event 1: no time; give the event a date time:timestamp" in caught.value.message
    assert "number the lines (--times line)" in caught.value.message
    assert caught.value.details["problem_count"] == 3
    events = read_events(path, ReaderOptions(times="line"))
    assert [(one.id, one.time_us) for one in events] == [("c:1", 0), ("c:2", 1), ("d:1", 2)]


def test_numbers_that_are_empty_or_odd_are_missing_and_counted(tmp_path: Path) -> None:
    odd = [("int", ""), ("int", "x"), ("float", "3,5"), ("int", "7"), ("float", "1.5")]
    path = write(tmp_path, trace("c", *(event("A", NOON, attribute(kind, "n", value)) for kind, value in odd)))
    notices: list[str] = []
    events = read_events(path, ReaderOptions(on_notice=notices.append))
    assert [one.data["n"] for one in events] == [None, None, None, 7, 1.5]
    assert notices == [f"{path}: n: 3 values are not a number, and missing therefore"]


CLASSIFIED = (
    '<classifier name="Activity" keys="Activity"/><classifier name="Both" keys="Activity \'life cycle\'"/>'
    '<classifier name="Case" scope="trace" keys="concept:name"/>'
)


@pytest.mark.parametrize(("name", "types"), [("Activity", ["A", "B"]), ("Both", ["A+start", "B+end"])])
def test_a_classifier_makes_event_types(tmp_path: Path, name: str, types: list[str]) -> None:
    events = [
        event(None, NOON, attribute("string", "Activity", one), attribute("string", "life cycle", step))
        for one, step in (("A", "start"), ("B", "end"))
    ]
    path = write(tmp_path, trace("c", *events), head=OPEN_LOG + CLASSIFIED)
    assert [one.type for one in read_events(path, ReaderOptions(classifier=name))] == types
    with pytest.raises(EventFileError, match=r"no concept:name; .* or a classifier of the log \(--classifier\)"):
        read_events(path)
    with pytest.raises(EventFileError, match=r"no classifier 'Case'; it has Activity, Both"):
        read_events(path, ReaderOptions(classifier="Case"))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (trace(None, event("A", NOON)), "trace 1: no concept:name; a trace needs one"),
        (trace("c") + trace("d", event(None, NOON)), r"trace 2 \('d'\), event 1: no concept:name; an event needs one"),
        (trace("c", event("A", "1970-01-01T12:00:00")), r"trace 1 \('c'\), event 1: time .* has no time zone"),
        (trace("c", event("A", NOON, attribute("int", "n", str(2**63)))), "attribute n: .* is not of the type int"),
        (
            trace("c", event("A", NOON, attribute("boolean", "b", "yes"))),
            "attribute b: 'yes' is not of the type boolean",
        ),
        (event("A", NOON), "events outside of traces"),
        ("<trace>", "not XML: mismatched tag: line 1"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, body: str, reason: str) -> None:
    path = write(tmp_path, body)
    with pytest.raises(EventFileError, match=reason) as caught:
        read_events(path)
    assert caught.value.message.startswith(str(path))


def test_a_missing_key_attribute_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EventFileError, match="event 1: no attribute org:group, which was named as the correlation key"):
        read_events(write(tmp_path, trace("c", event("A", NOON))), ReaderOptions(key="org:group"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not XML"),
        ("plain text", "not XML"),
        ("<html></html>", "not XES: its root is <html>"),
        ('<!DOCTYPE log [<!ENTITY a "b">]><log/>', "document type or entities"),
        ('<!DOCTYPE log SYSTEM "file:///etc/passwd"><log/>', "document type or entities"),
        ('<?xml version="1.0" encoding="no-such"?><log/>', "unknown encoding"),
    ],
)
def test_what_is_not_xes_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "log.xes"
    path.write_text(content)
    with pytest.raises(EventFileError, match=reason):
        read_events(path)


@given(
    st.lists(
        st.tuples(st.sampled_from(("c", "c:1", "d")), st.lists(st.tuples(texts(1), st.integers(0, 3)), max_size=4)),
        max_size=4,
    )
)
def test_any_log_is_read_with_unique_ids_in_stable_order(
    tmp_path_factory: pytest.TempPathFactory, log: list[tuple[str, list[tuple[str, int]]]]
) -> None:
    def encodable(name: str) -> str:
        return "".join(f"{ord(character):x}." for character in name)

    traces = [trace(case, *(event(encodable(name), format_time(at)) for name, at in body)) for case, body in log]
    events = read_events(write(tmp_path_factory.mktemp("logs"), *traces))
    written = [(case, encodable(name), at) for case, body in log for name, at in body]
    assert [(one.key, one.type, one.time_us) for one in events] == sorted(written, key=lambda row: row[2])
    assert len({one.id for one in events}) == len(events)
    assert all(isinstance(one, Event) for one in events)
