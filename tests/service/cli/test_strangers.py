"""``forestall match`` on files of strangers, as a user calls it."""

import orjson
import pytest

LOG = """ticket,activity,when,key,price
7,opened,2026-01-31 10:30:00,k1,5
7,closed,2026-01-31 11:00:00,k2,9
8,opened,2026-01-31 10:31:00,k1,5
"""
PATTERN = "PATTERN p EVENT SEQ(opened o [price = 5], closed c [price > o.price])"
NAMED = ("--key", "ticket", "--type", "activity", "--time", "when")
LINE = b'{"id":"%s","type":"%s","time":%d,"key":"k"}\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "p.pattern").write_text(PATTERN)
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


def match(call, *options, events="log.csv"):
    return call("match", "--pattern", "p.pattern", "--events", events, "--json", *options)


def test_a_file_of_a_stranger_is_matched(call, folder):
    status, out, _ = match(call, *NAMED, "--assume-zone", "Europe/Berlin")
    (found,) = orjson.loads(out)["matches"]
    assert (status, found["key"], found["start"]) == (0, "7", "2026-01-31T09:30:00.000000Z")


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ((), "name the column with --type, --time"),
        (("--type", "activity", "--time", "when"), "such as --assume-zone UTC"),
        ((*NAMED, "--assume-zone", "Mars"), "unknown time zone 'Mars'"),
        ((*NAMED, "--id", "nr"), "with --id"),
        ((*NAMED, "--assume-zone", "UTC", "--attributes", "price,size"), "--attributes (size)"),
    ],
)
def test_what_is_missing_is_said_with_its_option(call, folder, options, advice):
    status, out, said = match(call, *options)
    assert (status, out) == (2, "")
    assert advice in " ".join(said.split())


def test_numbers_count_what_is_said(call, folder):
    (folder / "log.csv").write_text("id,type,time,key,price\na,opened,1769850000,k,5\nb,closed,1769850060.5,k,6\n")
    (found,) = orjson.loads(match(call, "--time-unit", "s")[1])["matches"]
    assert (found["start"], found["end"]) == ("2026-01-31T09:00:00.000000Z", "2026-01-31T09:01:00.500000Z")


def test_an_id_that_comes_again_is_dropped_and_said(call, folder):
    (folder / "p.pattern").write_text("PATTERN p EVENT SEQ(A a, B b)")
    (folder / "e.jsonl").write_bytes(
        b"".join(LINE % one for one in ((b"1", b"A", 1), (b"1", b"A", 1), (b"2", b"B", 2)))
    )
    status, out, said = match(call, events="e.jsonl")
    report = orjson.loads(out)
    assert (status, len(report["matches"]), report["duplicates"], report["stats"]["events"]) == (0, 1, 1, 2)
    assert "an event was dropped, as the id occurred before in the file; --duplicates keep keeps" in " ".join(
        said.split()
    )
    kept = orjson.loads(match(call, "--duplicates", "keep", events="e.jsonl")[1])
    assert (len(kept["matches"]), "duplicates" in kept) == (2, False)
