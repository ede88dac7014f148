"""Operators of every kind change, pause, end and begin again while derived events are on their way between shards.

A run that lets all entries of the logs arrive after each step is compared with one whose shards match some entries now
and then, and are saved and loaded in between. Operators at the source of the events give equal results, and so do all
operators behind these. Where an operator behind the log changes, its versions share the events: none is lost or counted
twice, none reaches a version that ended before it was posted, and events of a later time have no trace of what was.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple, TypeAlias

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from shards import InlineShards, RowBlock, ShardState
from shards.kinds import KINDS_BY_NAME
from shards.operators import DocumentKind
from streams import (
    ControlRecord,
    Definition,
    Event,
    EventBatch,
    OperatorOff,
    OperatorOn,
    OperatorPause,
    Start,
    StreamDeclaration,
    StreamOff,
    StreamOn,
    Tick,
)

SECOND_US = 1_000_000
FAR_US = 1_000 * SECOND_US
PROBES = 100_000  # the numbers of events behind all changes are greater
Document: TypeAlias = Mapping[str, Any]
Said: TypeAlias = tuple[str, ControlRecord]
Documents: TypeAlias = Mapping[str, Sequence[Document]]


def pattern(name: str, stream: str, event: str, rest: str = "", **members: Any) -> Document:
    """A pattern; without RETURN in ``rest``, it returns the attributes of the event ``a``."""
    returned = "" if "RETURN" in rest else "RETURN a.c AS c, a.g AS g, a.n AS n "
    return {
        "kind": "pattern",
        "name": name,
        "stream": stream,
        "text": f"PATTERN {name} EVENT {event} {returned}{rest}",
    } | members


def aggregate(name: str, of: str, by: str, window: Any, **members: Any) -> Document:
    values = {"count": "count()", "n": "last(n)"}
    return {"kind": "aggregate", "name": name, "of": of, "by": [by], "values": values, "window": window} | members


def join(name: str, streams: str, key: str | None = None, **members: Any) -> Document:
    """A join of two streams, whose aliases are ``a`` and ``b``."""
    keys = {} if key is None else {"key": key}
    inputs = [{"stream": stream, "as": alias, **keys} for stream, alias in zip(streams, "ab", strict=True)]
    returned = {"c": "a.c", "g": "a.g", "n": "a.n", "other": "b.n"}
    return {"kind": "join", "name": name, "inputs": inputs, "window": "12 s", "return": returned} | members


def quiet(name: str, stream: str) -> Document:
    return pattern(name, stream, "SEQ(M a, WITHIN 9 s NOT M)")


INTO_D = "INTO d KEY c TYPE M"
BY_C, BY_G = ({"by": [name], "for": "6 s"} for name in "cg")
AT_SOURCE: Documents = {  # their versions, of which the first one begins
    "one": [
        pattern("one", "s", "A a", INTO_D),
        pattern("one", "s", "A a", f"RETURN a.c AS c, a.g AS g, a.n AS n, 1 AS more {INTO_D}"),
        pattern("one", "s", "SEQ(B b, A a) WITHIN 20 s", INTO_D),
        pattern("one", "s", "SEQ(A a, WITHIN 5 s NOT B)", INTO_D),
        pattern("one", "s", "A a", "INTO e TYPE M"),
        pattern("one", "s", "A a", "INTO f KEY g TYPE M"),
        pattern("one", "s", "A a"),
    ],
    "two": [
        pattern("two", "t", "A a", INTO_D),
        pattern("two", "t", "A a", "INTO f KEY c TYPE M"),
        pattern("two", "t", "A a", "INTO d TYPE M"),
    ],
    "sums": [aggregate("sums", "s", "key", "20 s"), aggregate("sums", "s", "key", {"tumbling": "10 s"}, type="Sum")],
    "both": [join("both", "st"), join("both", "st", window="7 s"), join("both", "st", outer=["b"])],
    "late": [pattern("late", "s", f"SEQ(A a, B b) WITHIN {span} s EMIT TIMEOUTS") for span in (8, 4)],
    "taken": [{"kind": "tap", "name": "taken", "of": "s", "results": "timeouts", "type": kind} for kind in "MT"],
}
LISTENING = [  # they run all the time
    pattern("of_sums", "sums", "sums|Sum a", "RETURN a.n AS n INTO f KEY n TYPE M"),
    pattern("of_both", "both", "both a", "INTO f KEY c TYPE M"),
    pattern("of_taken", "taken", "M|T a", "RETURN a.pattern AS c INTO f KEY c TYPE T"),
    pattern("each", "d", "M a"),
    pattern("pairs", "d", "SEQ(M b, M a) WITHIN 12 s SELECT NEXT"),
    *(quiet(f"quiet_{stream}", stream) for stream in "def"),
    pattern("moved", "d", "M a", "INTO h KEY g TYPE M"),
    pattern("moved_pairs", "h", "SEQ(M b, M a) WITHIN 12 s SELECT NEXT"),
    aggregate("by_g", "d", "g", "15 s"),
    aggregate("by_key", "d", "key", {"tumbling": "10 s"}),
    join("with_t", "dt", "data.g", outer=["a"]),
]
ALL_ALONG = [
    *(quiet(f"quiet_{stream}", stream) for stream in "dh"),
    pattern("pairs", "d", "SEQ(M b, M a) WITHIN 12 s SELECT NEXT"),
    aggregate("by_key", "d", "key", {"tumbling": "10 s"}),
    join("fixed", "dt", "data.g"),
    pattern("of_by_g", "by_g", "by_g|G a", "RETURN a.n AS n"),
]
BEHIND_LOG: Documents = {
    "one": AT_SOURCE["one"][:2],
    "each": [pattern("each", "d", "M a"), pattern("each", "d", "M a", "RETURN a.n AS n")],
    "moved": [pattern("moved", "d", "M a", f"INTO h {key} TYPE M") for key in ("KEY g", "KEY n")],
    "by_g": [aggregate("by_g", "d", "g", "15 s"), aggregate("by_g", "d", "g", "9 s", type="G")],
    "groups": [
        aggregate("groups", "s", "g", "15 s"),
        aggregate("groups", "s", "c", "15 s"),
        aggregate("groups", "s", "g", "7 s", where="n > 0"),
        aggregate("groups", "t", "g", "15 s"),
    ],
    "kept": [join("kept", "dt", "data.g"), join("kept", "dt", "data.g", type="Kept")],
    "anew": [
        join("anew", "dt", "data.g"),
        join("anew", "dt", "data.c"),
        join("anew", "dt", "data.g", outer=["a"]),
        join("anew", "td", "data.g"),
        join("anew", "ds", "data.g"),
    ],
    "calm": [
        pattern("calm", "s", "A a", suppress=BY_C),
        pattern("calm", "s", "A a", suppress=BY_G),
        pattern("calm", "s", "A a", suppress=BY_C, incident={"close_after": "15 s"}),
        pattern("calm", "s", "A a", suppress={"by": ["key"], "for": "3 s"}),
    ],
}
SHARING = {"each": "d", "moved": "d", "by_g": "d", "calm": "s"}  # all versions read every event of this stream
INNER = {
    **{name: f"{name}.inputs" for name in ("both", "with_t", "fixed", "by_g", "groups", "kept", "anew")},
    "calm": "calm.alerts",
}
CHANGED = {*BEHIND_LOG, "of_by_g", "quiet_h"} - {"one"}
STREAMS = {
    **{name: StreamDeclaration(name=name) for name in "st"},
    **{
        name: StreamDeclaration(name=name, derived=True)
        for name in (*"defh", "sums", "taken", "by_key", *INNER, *INNER.values())
    },
}


class Step(NamedTuple):
    """Control records, or posted events of a stream; ``settles``: everything arrives in any run."""

    records: Sequence[Said] = ()
    stream: str = ""
    events: Sequence[Event] = ()
    settles: bool = False


class Change(NamedTuple):
    """A version that begins (``on``) or stops behind a number of posted events."""

    number: int
    action: str
    version: int


def definitions(document: Document, version: int) -> list[Definition]:
    """An operator and its parts."""
    kind = KINDS_BY_NAME[document["kind"]]
    assert isinstance(kind, DocumentKind)
    whole = kind.read({name: value for name, value in document.items() if name != "kind"}, STREAMS.__getitem__)
    return [replace(one, version=version) for one in (whole, *kind.parts(whole, STREAMS.__getitem__))]


@dataclass
class Operators:
    """The operators of a service, and the control records of their life cycles."""

    documents: dict[str, Document] = field(default_factory=dict)
    changes: dict[str, list[Change]] = field(default_factory=lambda: defaultdict(list))
    running: dict[str, list[Definition]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    def version(self, name: str) -> int:
        return max((change.version for change in self.changes[name]), default=0)

    def state(self, name: str) -> str:
        return self.changes[name][-1].action if self.changes[name] else "deleted"

    def on(self, document: Document, number: int, *, is_resumed: bool = False) -> list[Said]:
        """Begin another version, or the present one again."""
        name, kind = document["name"], document["kind"]
        version = self.version(name) + (not is_resumed)
        start: Start = "keep" if name == "kept" and self.state(name) == "on" else "fresh"
        before = self.running.get(name, [])[1:] if self.state(name) == "on" and kind != "pattern" else []
        whole, *parts = self.running[name] = definitions(document, version)
        self.documents[name] = document
        self.changes[name].append(Change(number, "on", version))
        left = {(one.name, one.inputs) for one in before} - {(one.name, one.inputs) for one in parts}
        return [
            *((inner, StreamOn(STREAMS[inner])) for inner in self._restored(name)),
            (whole.inputs[0].stream, OperatorOn(whole, start)),
            *(
                (one.inputs[0].stream, OperatorOff(one.kind, one.name))
                for one in before
                if (one.name, one.inputs) in left
            ),
            *((one.inputs[0].stream, OperatorOn(one, "keep" if kind == "pattern" else start)) for one in parts),
        ]

    def off(self, name: str, number: int, stop: type[OperatorOff]) -> list[Said]:
        """Pause or delete an operator; a pattern's part continues while the pattern is paused."""
        action = "paused" if stop is OperatorPause else "deleted"
        running = self.running[name] if self.state(name) == "on" else []
        stopped = running[:1] if self.documents[name]["kind"] == "pattern" else running
        self.changes[name].append(Change(number, action, self.version(name)))
        records: list[Said] = [(one.inputs[0].stream, stop(one.kind, one.name)) for one in stopped]
        if action == "deleted" and name in INNER:
            self.removed.add(INNER[name])
            records.append((INNER[name], StreamOff(INNER[name])))
        return records

    def _restored(self, name: str) -> set[str]:
        restored = {INNER.get(name, "")} & self.removed
        self.removed -= restored
        return restored

    def newest(self) -> list[Said]:
        """Records that begin only the newest version of each operator."""
        every = [one for name, document in self.documents.items() for one in definitions(document, self.version(name))]
        return [(one.inputs[0].stream, OperatorOn(one)) for one in every]

    def may_read(self, name: str, version: int, number: int) -> bool:
        """Whether a version may read an event: it was not posted after its end, nor before it was deleted and begun."""
        changes, begun = self.changes[name], 0
        for change, following in zip(changes, [*changes[1:], None], strict=True):
            if change.action == "deleted":
                begun = change.number if name in ("groups", "calm") else begun  # nothing waits before their inputs
            elif change.action == "on" and change.version == version:
                begun = change.number if name == "one" else begun  # it reads posted events
                if begun < number and (following is None or number <= following.number):
                    return True
        return False

    def must_read(self, name: str, number: int) -> bool:
        """Whether an operator runs when an event is posted, and does not stop after it."""
        before = [change for change in self.changes[name] if change.number < number]
        after = [change for change in self.changes[name] if change.number >= number]
        stops = {"deleted"} if name == "calm" else {"deleted", "paused"}
        return bool(before) and before[-1].action == "on" and not any(change.action in stops for change in after)


class Life:
    """A random life of operators: posted events, time that passes, and changes of a few of them, in any order.

    Times rise over all streams, so no posted event is late.
    """

    def __init__(self, rng: Random, changing: Documents, fixed: Sequence[Document], length: int) -> None:
        self._rng, self._now_us, self._number = rng, 10 * SECOND_US, 0
        self.operators = Operators()
        first = [
            *fixed,
            *(versions[0] for versions in changing.values()),
            *([] if "two" in changing else AT_SOURCE["two"][:1]),
        ]
        self.steps = [Step([(name, StreamOn(declaration)) for name, declaration in STREAMS.items()])]
        self.steps += [Step([said for document in first for said in self.operators.on(document, 0)]), self._time("st")]
        chosen = rng.sample(sorted(changing), 3)
        for _ in range(length):
            match rng.randrange(10):
                case 0:
                    self.steps.append(self._time(rng.choice(("s", "t", "st"))))
                case 1 | 2 | 3 | 4:
                    self.steps.append(Step(self._change(rng.choice(chosen), changing)))
                case _:
                    self._post()
        self._pass_time()

    def _post(self) -> None:
        rng, events = self._rng, list[Event]()
        for _ in range(rng.randint(1, 4)):
            self._number, self._now_us = self._number + 1, self._now_us + rng.choice((1, 1, 2, 4)) * SECOND_US
            data = {"c": rng.choice("xyz"), "g": rng.choice("uvw"), "n": self._number}
            key = f"k{rng.randrange(4)}"
            events.append(
                Event(id=f"e{self._number}", type=rng.choice("AAB"), time_us=self._now_us, key=key, data=data)
            )
        self.steps.append(Step(stream=rng.choice("sst"), events=events))

    def _time(self, streams: str, by_us: int = 1, *, settles: bool = False) -> Step:
        self._now_us += by_us
        tick = Tick(time_us=self._now_us, cause="events")
        return Step([(stream, tick) for stream in streams], settles=settles)

    def _pass_time(self) -> None:
        """Let all windows pass, hop by hop."""
        self.steps += [self._time("st", FAR_US, settles=True) for _ in range(5)]

    def _change(self, name: str, changing: Documents) -> Sequence[Said]:
        rng, operators, number = self._rng, self.operators, self._number
        other = rng.choice(changing[name])
        match operators.state(name), rng.randrange(6):
            case "paused", 0 | 1 | 2:
                return operators.on(operators.documents[name], number, is_resumed=True)
            case "on", 0:
                return operators.off(name, number, OperatorPause)
            case "on" | "paused", 3:
                return operators.off(name, number, OperatorOff)
        return operators.on(other, number)

    def probed(self) -> Sequence[Step]:
        """Begin what is stopped, and post further events; returns the steps of a run that begins with these events."""
        operators = self.operators
        for name, document in list(operators.documents.items()):
            if (state := operators.state(name)) != "on":
                self.steps.append(Step(operators.on(document, self._number, is_resumed=state == "paused")))
        self.steps.append(self._time("st", FAR_US, settles=True))
        before, self._number = len(self.steps), PROBES
        for _ in range(5):
            self._post()
        self._pass_time()
        return [self.steps[0], Step(operators.newest()), *self.steps[before - 1 :]]


def run(steps: Iterable[Step], shards: int, rng: Random | None = None) -> tuple[InlineShards, list[RowBlock]]:
    """The rows of steps; without ``rng``, all entries are matched after each step."""
    inline, blocks = InlineShards(shards), list[RowBlock]()
    for step in steps:
        for stream, record in step.records:
            inline.append_record(stream, record)
        if step.events:
            inline.feed(step.stream, EventBatch.from_events(step.events))
        if rng is None or step.settles:
            blocks += inline.settle()
            continue
        for shard in range(shards):
            if rng.random() < 0.5:
                blocks += inline.step(shard, rng.randint(1, 5))
            if rng.random() < 0.1:
                inline.states[shard] = ShardState.load(inline.states[shard].dump())
    assert {measured.get("waiting") or 0 for state in inline.states for measured in state.measures().values()} == {0}
    return inline, blocks


class Found(NamedTuple):
    """A result: its kind, its operator, and its body without the position at which it was found."""

    kind: str
    name: str
    body: Mapping[str, Any]

    @property
    def text(self) -> str:
        return self.kind + orjson.dumps(self.body, option=orjson.OPT_SORT_KEYS).decode()

    @property
    def numbers(self) -> list[int]:
        """The numbers of the posted events in a result."""
        return [self.values[name] for name in ("n", "other") if isinstance(self.values.get(name), int)]

    @property
    def values(self) -> Mapping[str, Any]:
        """What was returned, or the attributes of a derived event."""
        return self.body.get("returns") or self.body.get("data") or {}


def found_in(blocks: Iterable[RowBlock]) -> list[Found]:
    rows = [row for block in blocks for row in block if row.kind != "ending-count"]
    bodies = [
        {name: value for name, value in orjson.loads(row.body).items() if name not in ("position", "shard")}
        for row in rows
    ]
    found = [Found(row.kind, row.subject, body) for row, body in zip(rows, bodies, strict=True)]
    assert [one for one in found if one.kind == "dead-letter" or "suspension" in one.kind] == []
    assert len({(row.kind, row.id) for row in rows}) == len(rows)
    return found


def texts(found: Iterable[Found]) -> list[str]:
    return sorted(one.text for one in found)


lives = settings(max_examples=3, deadline=None)
seeds, shard_counts = st.integers(0, 2**32 - 1), st.sampled_from((2, 3, 1))


@lives
@given(seed=seeds, shards=shard_counts)
def test_results_behind_changing_operators_do_not_depend_on_what_is_on_its_way(seed: int, shards: int) -> None:
    rng = Random(seed)
    life = Life(rng, AT_SOURCE, LISTENING, 25)
    _, expected = run(life.steps, shards)
    _, found = run(life.steps, shards, rng)
    assert texts(found_in(found)) == texts(found_in(expected))


@lives
@given(seed=seeds, shards=shard_counts)
def test_versions_behind_the_log_share_the_events_that_are_on_their_way(seed: int, shards: int) -> None:
    rng = Random(seed)
    life = Life(rng, BEHIND_LOG, ALL_ALONG, 25)
    fresh = life.probed()
    settled, cut, probes = (
        found_in(run(*some)[1]) for some in ((life.steps, shards), (life.steps, shards, rng), (fresh, shards))
    )
    unchanged = [texts(one for one in found if one.name not in CHANGED) for found in (settled, cut)]
    assert unchanged[0] == unchanged[1]
    for found in (settled, cut):
        assert texts(filter(is_probe, found)) == texts(filter(is_probe, probes))
        require_shared(life, found)


def is_probe(found: Found) -> bool:
    return max(found.numbers, default=0) > PROBES


def require_shared(life: Life, found: Sequence[Found]) -> None:
    """Check which version has read which event, and that none was lost, read twice or read as by another version."""
    operators = life.operators
    posted = {event.data["n"]: event for step in life.steps for event in step.events}
    read: dict[str, Counter[int]] = defaultdict(Counter)
    made = {"d": Counter[int](), "s": Counter[int]()}
    for one in found:
        if one.kind in ("alert", "suppressed-alert", "derived") and one.name in BEHIND_LOG:
            assert all(operators.may_read(one.name, one.body["version"], number) for number in one.numbers), one
            events = [posted[number].data for number in one.numbers]
            assert all(one.values.get(name) in (None, events[0][name]) for name in "cg"), one
            assert any(events[0][name] == events[-1][name] for name in "cg"), one
            read[one.name].update(one.numbers[:1])
        if one.kind == "derived" and one.body["into"] == "d":
            made["d"].update(one.numbers)
    of_s = (event for step in life.steps if step.stream == "s" for event in step.events)
    made["s"].update(event.data["n"] for event in of_s if event.type == "A")
    for name, stream in SHARING.items():
        assert read[name] <= made[stream], name
        must = Counter({number: 1 for number in made[stream] if operators.must_read(name, number)})
        assert must <= read[name], name
    if all(change.action == "on" for change in operators.changes["kept"]):
        assert pairs(found, "kept") == pairs(found, "fixed")


def pairs(found: Sequence[Found], name: str) -> list[list[int]]:
    return sorted(one.numbers for one in found if one.name == name and one.kind == "derived")
