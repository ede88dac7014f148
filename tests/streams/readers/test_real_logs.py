"""Real event logs, where the files are present."""

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from defusedxml.ElementTree import parse

from streams.readers import ReaderOptions, read_events
from streams.timestamps import parse_time

LOGS = Path(__file__).resolve().parents[4] / "shared" / "data" / "logs"


def find_log(name: str) -> Path:
    """The path of a shared log."""
    path = LOGS / f"{name}.xes.gz"
    if not path.exists():
        pytest.skip(f"shared data absent: {path} (issue #2)")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "traces", "events"),
    [
        ("receipt", 1_434, 8_577),
        pytest.param("bpic2013_incidents", 7_554, 65_533, marks=pytest.mark.deep),
        ("teleclaims", 3_512, 46_138),
        ("repairExample", 1_104, 11_855),
        ("reviewing", 100, 3_730),
        ("roadtraffic100traces", 100, 390),
        ("running-example", 6, 42),
    ],
)
def test_every_event_of_a_log_is_read(name: str, traces: int, events: int) -> None:
    read = read_events(find_log(name))
    assert len(read) == events
    assert len({event.id for event in read}) == events
    assert len({event.key for event in read}) == traces
    assert all(first.time_us <= second.time_us for first, second in pairwise(read))


@pytest.mark.parametrize("name", ["receipt", "repairExample", "reviewing", "roadtraffic100traces", "running-example"])
def test_a_log_reads_as_its_document_says(name: str) -> None:
    path = find_log(name)
    with gzip.open(path) as file:
        root = parse(file).getroot()
    assert root is not None
    written = []
    for trace in root.findall("{*}trace"):
        case = next(child.get("value") for child in trace if child.get("key") == "concept:name")
        for number, event in enumerate(trace.findall("{*}event"), start=1):
            values = {child.get("key"): child.get("value") for child in event}
            written.append((f"{case}:{number}", values["concept:name"], parse_time(values["time:timestamp"]), case))
    read = [(event.id, event.type, event.time_us, event.key) for event in read_events(path)]
    assert read == sorted(written, key=lambda row: row[2])


def test_the_lifecycle_option_splits_the_types_of_a_log() -> None:
    path = find_log("reviewing")
    plain = {event.type for event in read_events(path)}
    split = {event.type for event in read_events(path, ReaderOptions(lifecycle=True))}
    assert "invite reviewers" in plain
    assert {"invite reviewers+start", "invite reviewers+complete"} <= split
    assert {name.rpartition("+")[0] for name in split} == plain
