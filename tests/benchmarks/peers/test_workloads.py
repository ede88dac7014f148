"""The workloads are what was agreed, and our engine finds in them what its reference does."""

from itertools import islice

import orjson
import pytest

from benchmarks.peers.cases import CASES
from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.drivers.library_driver import answer, columns_of
from benchmarks.peers.workloads import WORKLOADS, Absent, file_of
from nfa import parse_pattern
from streams import Event
from tests.references.patterns.outcome import reference_matches


def events_of(path):
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    return [
        Event(id=line["id"], type=line["type"], time_us=line["time"], key=line["key"], data=line["data"])
        for line in lines
    ]


def referred(texts, path):
    """Number and digest of what the reference finds."""
    places = {f"p{place}": place for place in range(len(texts))}
    found = reference_matches([parse_pattern(text) for text in texts], events_of(path))
    return digest_of(
        (places[match.pattern], sorted(int(one[1:]) for ids in match.bindings.values() for one in ids))
        for match in found
    )


@pytest.mark.parametrize("events", [20_000, pytest.param(200_000, marks=pytest.mark.deep)])
@pytest.mark.parametrize("case", [case for case in CASES if case.workload == "w"], ids=lambda case: case.name)
def test_workload_w_has_the_agreed_matches(case, events, tmp_path):
    found, _ = answer(case.texts("forestall"), columns_of(str(file_of("w", events, tmp_path))))
    assert found == case.expected[events]


OF_PATTERNS = [  # the reference takes seconds for the long traces of a real log
    pytest.param(case, id=case.name, marks=pytest.mark.deep if case.workload == "log" else ())
    for case in CASES
    if not (case.is_join or case.is_aggregate)
]


@pytest.mark.parametrize("case", OF_PATTERNS)
def test_our_engine_agrees_with_its_reference(case, tmp_path):
    events = 120 if case.query == "kleene" else 300
    try:
        path = file_of(case.workload, events, tmp_path)
    except Absent as reason:
        pytest.skip(f"shared data absent: {reason} (issue #8)")
    texts = case.texts("forestall")
    assert answer(texts, columns_of(str(path))) == referred(texts, path)


def test_workload_w_is_as_agreed_to_the_letter():
    rows = list(islice(WORKLOADS["w"](), 3))
    assert [(row.type, row.time_us, row.key, row.value) for row in rows] == [
        ("T3", 1_700_000_000_000_000, "k654", 4.09),
        ("T8", 1_700_000_000_001_000, "k759", 40.12),
        ("T4", 1_700_000_000_002_000, "k228", 16.79),
    ]


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name != "log"])
def test_a_shorter_file_is_the_beginning_of_a_longer_one(name, tmp_path):
    short, long = file_of(name, 50, tmp_path).read_bytes(), file_of(name, 200, tmp_path).read_bytes()
    assert len(short.splitlines()) == 50
    assert long.startswith(short)
