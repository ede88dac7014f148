"""Files of strangers: other names of columns, times in the usual forms, ids that come again."""

import pytest

from streams.errors import DeclarationError, EventFileError
from streams.readers import Columns, ReaderOptions, read_batch, read_events
from streams.readers.times import read_time

HELP_DESK = """ticket,activity,when,id,time,key,price
7,opened,2026-01-31 10:30:00,a,early,k1,5
7,closed,2026-01-31 11:00:00,b,late,k2,
"""
MAPPED = Columns(type="activity", time="when")
NOON_US = 1_769_860_800_000_000  # 2026-01-31T12:00:00Z


def write(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_columns_are_named_and_no_other_vanishes(tmp_path):
    options = ReaderOptions(columns=MAPPED, key="ticket", zone="UTC")
    first, second = read_events(write(tmp_path, HELP_DESK), options)
    assert (first.id, first.type, first.key) == ("a", "opened", "7")
    assert first.data == {"ticket": 7, "time": "early", "key": "k1", "price": 5}
    assert second.data["price"] is None


def test_attributes_may_be_chosen(tmp_path):
    columns = Columns(type="activity", time="when", attributes=("price", "id"))
    options = ReaderOptions(columns=columns, key="ticket", zone="UTC")
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
    ],
)
def test_the_usual_forms_of_time(value, zone, unit):
    assert read_time(value, zone, unit) == NOON_US


def test_a_date_is_its_beginning_and_summer_time_counts():
    assert read_time("2026-01-31", "UTC", "us") == NOON_US - 12 * 3_600_000_000
    summer = [read_time("2026-07-01 12:00:00", zone, "us") for zone in ("Europe/Berlin", "UTC")]
    assert summer[1] - summer[0] == 2 * 3_600_000_000


@pytest.mark.parametrize(
    ("value", "unit", "reason"),
    [
        ("31.01.2026 12:00", "us", "neither a number nor ISO 8601"),
        ("2026-02-30 12:00", "us", "does not exist"),
        (str(NOON_US * 1_000), "us", "--time-unit"),
        ("1.5", "us", "--time-unit s"),
        (True, "us", "time True"),
        (float("nan"), "s", "not a number"),
    ],
)
def test_what_is_no_time_is_refused_with_advice(value, unit, reason):
    with pytest.raises(Exception, match=reason):
        read_time(value, "UTC", unit)


@pytest.mark.parametrize("zone", ["Nowhere/None", "+25:00", "../etc/passwd", ""])
def test_a_zone_that_is_none_is_refused(zone):
    with pytest.raises(DeclarationError, match="unknown time zone"):
        read_time("2026-01-31", zone, "us")


def test_xes_times_may_have_no_zone(tmp_path):
    text = """<log><trace><string key="concept:name" value="c"/><event><string key="concept:name" value="A"/>
    <date key="time:timestamp" value="2026-01-31T13:00:00.000"/></event></trace></log>"""
    path = write(tmp_path, text, "log.xes")
    with pytest.raises(EventFileError, match="--assume-zone"):
        read_events(path)
    assert read_events(path, ReaderOptions(zone="+01:00"))[0].time_us == NOON_US


def test_members_of_lines_are_mapped_and_none_vanishes(tmp_path):
    line = '{"nr": 1, "what": {"name": "A"}, "at": 5, "who": "k", "price": 3, "data": {"more": 1}}'
    options = ReaderOptions(columns=Columns(id="nr", type="what.name", time="at"), key="who", unit="s")
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
