"""Files of strangers: other names of columns, times in the usual forms, ids that come again."""

import orjson
import pytest

from streams.errors import DeclarationError, EventFileError
from streams.readers import Columns, ReaderOptions, iterate_events, read_batch, read_events
from streams.time_forms import TimeForm
from streams.timestamps import format_time

HELP_DESK = """ticket,activity,when,id,time,key,price
7,opened,2026-01-31 10:30:00,a,early,k1,5
7,closed,2026-01-31 11:00:00,b,late,k2,
"""
MAPPED = Columns(type="activity", time="when")
LATER = TimeForm(zone="Europe/Berlin", local_times="later")
NOON_US = 1_769_860_800_000_000  # 2026-01-31T12:00:00Z


def write(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_columns_are_named_and_no_other_vanishes(tmp_path):
    options = ReaderOptions(columns=MAPPED, key="ticket", clock=TimeForm(zone="UTC"))
    first, second = read_events(write(tmp_path, HELP_DESK), options)
    assert (first.id, first.type, first.key) == ("a", "opened", "7")
    assert first.data == {"ticket": 7, "time": "early", "key": "k1", "price": 5}
    assert second.data["price"] is None


def test_attributes_may_be_chosen(tmp_path):
    columns = Columns(type="activity", time="when", attributes=("price", "id"))
    options = ReaderOptions(columns=columns, key="ticket", clock=TimeForm(zone="UTC"))
    assert read_events(write(tmp_path, HELP_DESK), options)[0].data == {"price": 5, "id": "a"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (ReaderOptions(), "no column type among .*name the column with --type"),
        (ReaderOptions(columns=Columns(type="activty", time="when")), "no column activty among ticket, activity"),
        (ReaderOptions(columns=Columns(id="nr", type="activity", time="when")), "with --id"),
        (ReaderOptions(columns=Columns(type="activity", time="when", attributes=("x",))), "--attributes"),
        (ReaderOptions(columns=MAPPED), "has no time zone; give one, such as --assume-zone UTC"),
    ],
)
def test_what_is_missing_is_said_with_the_option(tmp_path, options, reason):
    with pytest.raises(EventFileError, match=reason):
        read_events(write(tmp_path, HELP_DESK), options)


@pytest.mark.parametrize(
    ("value", "zone", "unit"),
    [
        ("2026-01-31T12:00:00Z", None, "us"),
        ("2026-01-31 12:00:00+00:00", None, "us"),
        ("2026-01-31T13:00+0100", None, "us"),
        ("2026-01-31 13:00:00,000 +01", None, "us"),
        ("2026-01-31 12:00:00 UTC", None, "us"),
        ("2026-01-31 12:00", "UTC", "us"),
        ("2026-01-31T13:00:00.0", "Europe/Berlin", "us"),
        ("2026-01-31 10:00:00", "-02:00", "us"),
        ("2026-01-31T12:00:00Z", "Europe/Berlin", "us"),
        (NOON_US // 1_000_000, None, "s"),
        (f"{NOON_US // 1_000_000}.000", None, "s"),
        (NOON_US / 1_000_000, None, "s"),
        (str(NOON_US // 1_000), None, "ms"),
        (NOON_US, None, "us"),
        (str(NOON_US), None, "us"),
        (str(NOON_US * 1_000 + 999), None, "ns"),
        (NOON_US // 1_000_000, None, "auto"),
        (NOON_US / 1_000_000, None, "auto"),
        (str(NOON_US // 1_000), None, "auto"),
        (NOON_US, None, "auto"),
        (str(NOON_US * 1_000), None, "auto"),
        ("31.01.2026 12:00", "UTC", "auto"),
        ("31/1/2026, 12:00 PM", "UTC", "auto"),
        ("01/31/2026 12:00:00.000 p.m. +00:00", None, "auto"),
        ("2026/01/31 12:00", "UTC", "auto"),
    ],
)
def test_the_usual_forms_of_time(value, zone, unit):
    assert TimeForm(zone=zone, unit=unit).read(value) == NOON_US


def test_a_date_is_its_beginning_and_summer_time_counts():
    assert TimeForm(zone="UTC").read("2026-01-31") == NOON_US - 12 * 3_600_000_000
    summer = [TimeForm(zone=zone).read("2026-07-01 12:00:00") for zone in ("Europe/Berlin", "UTC")]
    assert summer[1] - summer[0] == 2 * 3_600_000_000


@pytest.mark.parametrize(
    ("value", "unit", "reason"),
    [
        ("noon", "us", "neither a number nor a usual date"),
        ("2026-02-30 12:00", "us", "does not exist"),
        (str(NOON_US * 1_000), "us", "--time-unit"),
        ("1.5", "us", "--time-unit s"),
        ("03/04/2025 09:00", "auto", "can be read in two ways; say --time-format day-first or month-first"),
        ("13:00 PM", "auto", "usual date"),
        ("2026-01-31 13:00 PM", "auto", "hour from 1 to 12"),
        ("31/31/2026", "auto", "does not exist"),
        (True, "us", "time True"),
        (float("nan"), "s", "not a number"),
    ],
)
def test_what_is_no_time_is_refused_with_advice(value, unit, reason):
    with pytest.raises(Exception, match=reason):
        TimeForm(zone="UTC", unit=unit).read(value)


@pytest.mark.parametrize("zone", ["Nowhere/None", "+25:00", "../etc/passwd", "", "localtime"])
def test_a_zone_that_is_none_is_refused(zone):
    with pytest.raises(DeclarationError, match="unknown time zone"):
        TimeForm(zone=zone)


def test_xes_times_may_have_no_zone(tmp_path):
    text = """<log><trace><string key="concept:name" value="c"/><event><string key="concept:name" value="A"/>
    <date key="time:timestamp" value="2026-01-31T13:00:00.000"/></event></trace></log>"""
    path = write(tmp_path, text, "log.xes")
    with pytest.raises(EventFileError, match="--assume-zone"):
        read_events(path)
    assert read_events(path, ReaderOptions(clock=TimeForm(zone="+01:00")))[0].time_us == NOON_US


def test_members_of_lines_are_mapped_and_none_vanishes(tmp_path):
    line = '{"nr": 1, "what": {"name": "A"}, "at": 5, "who": "k", "price": 3, "data": {"more": 1}}'
    options = ReaderOptions(columns=Columns(id="nr", type="what.name", time="at"), key="who", clock=TimeForm(unit="s"))
    (event,) = read_events(write(tmp_path, line, "log.jsonl"), options)
    assert (event.id, event.type, event.time_us, event.key) == ("1", "A", 5_000_000, "k")
    assert event.data == {"what": {"name": "A"}, "who": "k", "price": 3, "more": 1}


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_an_id_that_comes_again_is_dropped_and_counted_or_kept(tmp_path, name):
    rows = [("a", 1), ("b", 2), ("a", 3), ("a", 1)]
    text = "id,type,time,key\n" + "".join(f"{row},A,{time},k\n" for row, time in rows)
    if name.endswith("jsonl"):
        text = "".join(f'{{"id":"{row}","type":"A","time":{time},"key":"k"}}\n' for row, time in rows)
    path = write(tmp_path, text, name)
    dropped: list[int] = []
    assert [one.time_us for one in read_events(path, ReaderOptions(on_dropped=dropped.append))] == [1, 2]
    assert dropped == [2]
    assert len(read_batch(path, ReaderOptions(duplicates="keep", on_dropped=dropped.append))) == 4
    assert dropped == [2]


@pytest.mark.parametrize(
    ("form", "text", "month"),
    [
        ("day-first", "03/04/2025", 4),
        ("month-first", "03/04/2025", 3),
        ("%d.%m.%y %H", "03.04.25 00", 4),
        (None, "3.4.2025", 4),
    ],
)
def test_the_form_of_times_decides(form, text, month):
    assert TimeForm(zone="UTC", format=form).read(text) == TimeForm(zone="UTC").read(f"2025-{month:02}-{7 - month:02}")


@pytest.mark.parametrize(
    ("text", "earlier", "later"),
    [
        ("2026-03-29 02:30:00", "2026-03-29T00:30:00.000000Z", "2026-03-29T01:30:00.000000Z"),
        ("2026-10-25 02:30:00", "2026-10-25T00:30:00.000000Z", "2026-10-25T01:30:00.000000Z"),
    ],
)
def test_local_times_that_clocks_skip_or_repeat_are_chosen_and_counted(tmp_path, text, earlier, later):
    rows = f"id,type,time,key\n1,A,{text},k\n2,B,2026-06-01 12:00:00,k\n"
    path = write(tmp_path, rows)
    said: list[str] = []
    for clock, moment in ((TimeForm(zone="Europe/Berlin"), earlier), (LATER, later)):
        events = read_events(path, ReaderOptions(clock=clock, on_notice=said.append))
        assert format_time(min(event.time_us for event in events if event.id == "1")) == moment
        assert said.pop().startswith(f"{path}: 1 local times ")
    with pytest.raises(
        EventFileError, match=r"line 2: time .* in Europe/Berlin, where clocks were changed; choose --loc"
    ):
        read_events(path, ReaderOptions(clock=TimeForm(zone="Europe/Berlin", local_times="refuse")))


def test_the_order_of_the_file_keeps_the_times(tmp_path):
    text = "id,type,time,key\n1,A,2026-01-01T02:00:00Z,k\n2,B,2026-01-01T00:00:00Z,k\n"
    found = {
        times: read_events(write(tmp_path, text), ReaderOptions(times=times)) for times in ("event", "file", "line")
    }
    assert {times: [event.id for event in events] for times, events in found.items()} == {
        "event": ["2", "1"],
        "file": ["1", "2"],
        "line": ["1", "2"],
    }
    assert [format_time(event.time_us)[11:16] for event in found["file"]] == ["02:00", "00:00"]
    assert [event.time_us for event in found["line"]] == [0, 1]


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv"])
def test_ids_may_be_left_out_or_made_of_columns(tmp_path, name):
    rows = [{"order": order, "type": "A", "time": f"2026-01-01T0{hour}:00:00Z"} for hour, order in enumerate("abab")]
    text = "".join(f"{orjson.dumps(row).decode()}\n" for row in rows)
    if name.endswith("csv"):
        text = "".join(",".join(row) + "\n" for row in [rows[0], *(row.values() for row in rows)])
    path = write(tmp_path, text, name)
    made = ReaderOptions(key="order", columns=Columns(id=("order", "time")))
    for read in (read_events, read_batch, lambda path, options: list(iterate_events(path, options))):
        events = read(path, ReaderOptions(key="order"))
        named = read(path, made)
        for found, expected in (
            (events, ["a:1", "b:1", "a:2", "b:2"]),
            (named, ["a:2026-01-01T00:00:00Z", "b:2026-01-01T01:00:00Z"]),
        ):
            ids = [event.id for event in (found if isinstance(found, list) else found.to_events())]
            assert ids[: len(expected)] == expected
