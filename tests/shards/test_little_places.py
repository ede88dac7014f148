"""A place with little in it costs little: memory by peak, work by counts."""

import subprocess
import sys
import tracemalloc

import pytest

from nfa import Matcher, MatcherStats
from shards import ShardState, StoredEntry
from shards.kinds.patterns.host import PatternHost, pattern_host
from streams import EventBatch, PatternOn, StreamDeclaration, StreamOn, Tick, encode_control
from tests.builders.shards import event, saved_measures

ABSENCE = "PATTERN p EVENT SEQ(A a, NOT B b) WITHIN 5 s"
MANY_UNDER_A_LIMIT = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4_000_000_000, 4_000_000_000))
from shards import ShardState, StoredEntry
from streams import EventBatch, Event, StreamDeclaration, StreamOn, encode_control
state = ShardState(0)
for number in range(200):
    name = f"s{number}"
    on = StreamOn(StreamDeclaration(name=name))
    batch = EventBatch.from_events([Event(id="e", type="A", time_us=1, key="k")])
    entries = [
        StoredEntry(position=f"{number + 1}-1", kind="stream-on", stream=name, body=encode_control(on)),
        StoredEntry(position=f"{number + 1}-2", kind="events", stream=name, body=batch.to_bytes()),
    ]
    assert state.apply(entries) == []
print(len(state.streams))
"""


def control(number, record, stream="orders"):
    return StoredEntry(
        position=f"{number}-1", kind=record.KIND.value, stream=stream, body=encode_control(record), route=""
    )


def events(number, *these, stream="orders"):
    body = EventBatch.from_events(these).to_bytes()
    return StoredEntry(position=f"{number}-1", kind="events", stream=stream, body=body, route="")


def declared(names, **options):
    state = ShardState(0)
    for number, name in enumerate(names, 1):
        assert state.apply([control(number, StreamOn(StreamDeclaration(name=name, **options)), name)]) == []
    return state


def peak_of(made):
    """Peak of the memory that a call allocates, in bytes."""
    tracemalloc.start()
    try:
        kept = made()
        return tracemalloc.get_traced_memory()[1], kept
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("derived", [False, True])
def test_a_stream_without_event_or_pattern_takes_a_few_kilobytes(derived):
    declared(["warm"], derived=derived)
    size, _ = peak_of(lambda: declared([f"s{number}" for number in range(100)], derived=derived))
    assert size < 100 * 16_000


def test_a_matcher_with_little_in_it_takes_little_memory():
    batch = EventBatch.from_events([event(1, "A")])

    def fed():
        matchers = [Matcher() for _ in range(20)]
        for matcher in matchers:
            matcher.add_pattern(ABSENCE)
            matcher.process(batch)
        return matchers

    fed()
    size, _ = peak_of(fed)
    assert size < 20 * 200_000


def test_two_hundred_streams_of_one_shard_need_less_than_four_gigabytes_of_addresses():
    done = subprocess.run([sys.executable, "-c", MANY_UNDER_A_LIMIT], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("200", 0), done.stderr


def test_the_counts_of_a_place_are_read_again_only_where_something_came(monkeypatch):
    state = declared(["orders", "idle"])
    state.apply([events(10, event(1, "A")), events(11, event(1, "A"), stream="idle")])
    reads: list[Matcher] = []
    stats = vars(Matcher)["stats"]

    def counted(matcher: Matcher) -> MatcherStats:
        reads.append(matcher)
        return stats.fget(matcher)  # type: ignore[no-any-return]

    monkeypatch.setattr(Matcher, "stats", property(counted))
    first = state.measures()
    assert (len(reads), first["idle"]["events"]) == (2, 1)
    state.apply([events(12, event(2, "A"))])
    second = state.measures()
    assert (len(reads), second["orders"]["events"], second["idle"]) == (3, 2, first["idle"])


def test_a_host_without_matcher_measures_what_an_empty_matcher_does():
    host = pattern_host(StreamDeclaration(name="orders"), "", None)
    assert MatcherStats(**host.measures()) == Matcher().stats
    assert (list(host.names), host.newest_us, len(host.open_keys())) == ([], None, 0)
    host.advance_time(7)
    host.advance_time(3)
    loaded = PatternHost.load(StreamDeclaration(name="orders"), "", host.dump())
    assert (host.newest_us, loaded.newest_us, dict(loaded.dump().sections)) == (7, 7, {})


@pytest.mark.parametrize("saves", [False, True])
def test_time_that_passed_before_the_first_event_counts(saves):
    """The window of the A, which is older than the time that passed before it, has closed already."""
    state = declared(["orders"])
    state.apply([control(10, Tick(time_us=100_000_000, cause="clock"))])
    if saves:
        state = ShardState.load(state.dump())
    state.apply([control(11, PatternOn(name="p", version=1, text=ABSENCE))])
    rows = state.apply([events(12, event(1, "A"), event(2, "B"))])
    assert [row.kind for row in rows] == ["alert"]
    assert saved_measures(state)["orders"]["watermark_us"] == 100_000_000
