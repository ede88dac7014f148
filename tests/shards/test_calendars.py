"""Calendars in a shard: a deadline is that of the version when the first event came, in every cut and replay."""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nfa import MatcherStats
from shards.kinds.patterns.host import PatternHost
from shards.state import ShardState
from streams import PatternOn, StreamDeclaration, StreamOn, TableOn, Tick
from streams.tables import Calendar, TableFiles, keep_calendar
from tests.builders.shards import Step, bodies, event, log_of

AMOUNT, LAST = 10, 300  # minutes
ORDERS = StreamDeclaration(name="orders")
PATTERNS = [
    PatternOn(name=name, version=1, text=f"PATTERN {name} EVENT {text} WITHIN {AMOUNT} business min OF de")
    for name, text in (("missing", "SEQ(A a, NOT B b)"), ("found", "SEQ(A a, B b)"))
]
HOURS = st.lists(st.integers(0, 90), max_size=6, unique=True).map(sorted).filter(lambda one: len(one) % 2 == 0)
STEPS = st.lists(st.one_of(HOURS, st.tuples(st.sampled_from("AB"), st.integers(0, 20))), max_size=12)


def calendar_of(version, borders):
    """A version whose business time is on Thursdays, the first day of 1970, between pairs of minutes."""
    hours = [[], [], [], list(zip(borders[::2], borders[1::2], strict=True)) or [(600, 601)], [], [], []]
    calendar = Calendar(
        zone="UTC", hours=hours, closed=frozenset(), exceptions={}, years=(1970, 1970), document={"zone": "UTC"}
    )
    return replace(keep_calendar("de", calendar), version=version)


def log_with(steps):
    records: list[Step] = [StreamOn(ORDERS), TableOn(calendar_of(1, [])), *PATTERNS]
    minute, events = 0, []
    for number, step in enumerate(steps, start=2):
        if isinstance(step, tuple):
            minute += step[1]
            events.append((number, step[0], minute))
            records.append([replace(event(number, step[0]), time_us=minute * 60_000_000)])
        else:
            events.append((number, step, minute))
            records.append(TableOn(calendar_of(number, step)))
    (entries,) = log_of([*records, Tick(time_us=LAST * 60_000_000, cause="clock")]).values()
    return [replace(one, stream="") if one.kind.value.startswith("table") else one for one in entries], events


def naive(events):
    """The pairs that ``found`` binds, and when ``missing`` reports an event, by a walk over minutes."""
    is_open, found, missing = set[int](), [], []
    for place, (number, kind, minute) in enumerate(events):
        if isinstance(kind, list):
            is_open = {one for begin, end in zip(kind[::2], kind[1::2], strict=True) for one in range(begin, end)}
        elif kind == "A":
            passed = (one for one in range(minute, LAST) if one in is_open)
            deadline = next((one + 1 for count, one in enumerate(passed, start=1) if count == AMOUNT), LAST + 1)
            later = [(other, when) for other, what, when in events[place + 1 :] if what == "B" and when < deadline]
            found += [(number, other) for other, _ in later]
            if not later and deadline <= LAST:
                missing.append((number, deadline))
    return sorted(found), sorted(missing)


def counts_of(state: ShardState) -> list[MatcherStats]:
    """What the matchers count and hold; the most held at once counts matches that a batch has not yet emitted."""
    hosts = [host for place in state._places.values() for host in place._hosts.values()]
    matchers = [one._matcher for one in hosts if isinstance(one, PatternHost) and one._matcher is not None]
    return [replace(one.stats, peak_held=0, state_bytes=0) for one in matchers]


@given(steps=STEPS, cuts=st.sets(st.integers(1, 20)), saves=st.sets(st.integers(1, 20)))
@settings(max_examples=100)
@example(
    steps=[[53, 79], [0, 27, 30, 43, 52, 77], ("A", 0), ("B", 0), ("A", 0), [0, 73]], cuts={8, 17}, saves=set()
)  # a match within a batch
def test_deadlines_are_those_of_the_place_in_every_cut(steps, cuts, saves):
    entries, events = log_with(steps)
    state, rows, first = ShardState(0), [], 0
    for end in sorted({*cuts, *saves, len(entries)}):
        rows += state.apply(entries[first:end])
        first = max(first, min(end, len(entries)))
        if end in saves:
            state = ShardState.load(state.dump(), files=TableFiles())
            rows += state.apply(entries[max(0, first - 2) : first])
    alerts = bodies(rows, "alert")
    found = [one["bindings"] for one in alerts if one["pattern"] == "found"]
    missing = [(one["bindings"]["a"][0], one["detected_at"]) for one in alerts if one["pattern"] == "missing"]
    pairs, reported = naive(events)
    assert sorted((int(one["a"][0][1:]), int(one["b"][0][1:])) for one in found) == pairs
    assert sorted(missing) == sorted(
        (f"e{number}", f"1970-01-01T{minute // 60:02}:{minute % 60:02}:00.000000Z") for number, minute in reported
    )
    whole = ShardState(0)
    whole.apply(entries)
    assert counts_of(whole) == counts_of(state)
