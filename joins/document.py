"""The document of a join, and the check that its memory is bounded.

The document has the inputs, the closings of keys, and the derived events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast, get_args

import orjson

from joins.errors import JoinRefused
from joins.limiting import ResultLimits
from joins.returns import Column, Expressions, Member, no_expressions, read_members
from joins.windowed import MOST_INPUTS, MOST_RESULTS, Window
from streams import UNITS_US, key_hash

Emit: TypeAlias = Literal["each", "on_close"]
Late: TypeAlias = Literal["report", "drop", "fail"]
Retractions: TypeAlias = Literal["take", "event"]
Wait: TypeAlias = Literal["none", "auto"]
Closing: TypeAlias = Literal["unique", "clustered", "end", "punctuation", "workflow"]

_TRACE_ENDS = frozenset[Closing]({"end", "punctuation", "workflow"})
_ALIAS = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d|w|weeks?)\s*")
_MOST_DURATION_US = 2**62  # as in patterns: a time plus a duration is an int64
_PAIR = 2
_MEMBERS = (
    "inputs",
    "window",
    "where",
    "emit",
    "outer",
    "return",
    "type",
    "late",
    "memory",
    "wait",
    "results",
)
_MEMBERS_OF_INPUT = ("stream", "as", "type", "key", "closed_by", "window", "retractions")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinInput:
    """One input of a join.

    Attributes:
        key: Path of the join key, in the form of a stream's key. None for the stream's correlation key.
        types: Event types that take part. Empty if all do.
        closings: Conditions that finish a key, from ``closed_by``.
        closing_types: Event types that finish a key. An event of a type that is not in ``types`` joins nothing.
        retractions: ``take``: a retraction in a derived stream removes the retracted event from the join. ``event``:
            retractions are ordinary events.
        retractions_us: Declared time for which events can be retracted. 0 if none is declared.
        waits: Whether the join has ``wait: auto``. Then keys are whole numbers in roughly ascending order, and their
            measured disorder decides when keys are finished.
    """

    alias: str
    stream: str
    key: str | None
    types: tuple[str, ...]
    window: Window
    closings: frozenset[Closing]
    closing_types: frozenset[str]
    retractions: Retractions = "take"
    retractions_us: int = 0
    waits: bool = False

    @property
    def revocable_us(self) -> int | None:
        """How long an event can be retracted: the longer of the declared time and a time window.

        None: until its key is finished.
        """
        return max(self.retractions_us, self.window.size if self.window.kind == "time" else 0) or None

    @property
    def ends_with_traces(self) -> bool:
        """Whether the end of a trace, or a punctuation, finishes a key of the input."""
        return not self.closings.isdisjoint(_TRACE_ENDS)

    @property
    def finishes_ranges(self) -> bool:
        """Whether the input may finish all keys in a range of whole numbers at once."""
        return self.waits or self.ends_with_traces

    @property
    def closes(self) -> bool:
        """Whether any condition, event type or ``wait: auto`` finishes keys of the input."""
        return bool(self.closings or self.closing_types or self.waits)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinBody:
    """A join, as its document describes it.

    Attributes:
        emit: ``each``: an event for each combination. ``on_close``: an event for each key, once the key is finished.
        outer: Aliases of the inputs that may be absent. Combinations or events that lack them are reported.
        columns: Values of combinations or totals, from which the members of derived events are made.
        members: The members of derived events, made of the columns.
        event_type: Type of the derived events. None for the name of the join.
        late: Treatment of an event whose key is finished: report it, drop it, or fail, which suspends the join.
        memory_rows: If events are spilled to disk, the most events per shard in memory. None if nothing is spilled.
        most_rows: If nothing is spilled, the most events per shard that the join may hold. None for any number.
    """

    inputs: tuple[JoinInput, ...]
    emit: Emit
    outer: tuple[str, ...]
    columns: tuple[Column, ...]
    members: tuple[Member, ...]
    event_type: str | None
    late: Late
    memory_rows: int | None = None
    most_rows: int | None = None
    where: str | None = None
    results: ResultLimits = field(default_factory=ResultLimits)

    @property
    def multiplying(self) -> tuple[str, ...]:
        """Aliases of the inputs without a bound on the number of events of a key. Empty unless there are several.

        The number of combinations of a key is the product of the numbers of such events.
        """
        aliases = [
            join_input.alias
            for join_input in self.inputs
            if "unique" not in join_input.closings and join_input.window.kind != "events-of-key"
        ]
        return tuple(aliases) if len(aliases) > 1 else ()

    @property
    def waits(self) -> bool:
        """Whether the join has ``wait: auto``: the measured disorder of keys decides when keys are finished."""
        return any(join_input.waits for join_input in self.inputs)

    @property
    def reporting(self) -> tuple[int, ...]:
        """Numbers of the inputs whose unjoined events are reported, because ``outer`` names the other input.

        Empty for a join of more than two inputs.
        """
        if len(self.inputs) > _PAIR:
            return ()
        return tuple(
            number
            for number, join_input in enumerate(self.inputs)
            if any(alias != join_input.alias for alias in self.outer)
        )

    @property
    def optional(self) -> tuple[int, ...]:
        """Numbers of the inputs that a combination may lack. Empty for a join of two inputs."""
        if len(self.inputs) <= _PAIR:
            return ()
        return tuple(number for number, join_input in enumerate(self.inputs) if join_input.alias in self.outer)


def read_join(document: Mapping[str, Any], expressions: Expressions = no_expressions) -> JoinBody:
    """Read the document of a join. Raise ``JoinRefused`` if it is invalid or its memory would be unbounded.

    ``expressions`` reads those members of ``return`` that are not a single column.
    """
    _require_known(document, _MEMBERS, "a join")
    documents = document.get("inputs")
    if not isinstance(documents, Sequence) or isinstance(documents, str) or not 2 <= len(documents) <= MOST_INPUTS:
        raise JoinRefused(f"'inputs' of a join is a list of 2 to {MOST_INPUTS} inputs", field="inputs")
    window = _window(document.get("window", "none"), "window")
    waits = _choice(document, "wait", get_args(Wait)) == "auto"
    inputs = tuple(replace(_input(entry, number, window), waits=waits) for number, entry in enumerate(documents))
    if len(set(aliases := [join_input.alias for join_input in inputs])) != len(inputs):
        raise JoinRefused(f"two inputs are called alike: {', '.join(aliases)}; give each an 'as'", field="inputs")
    outer = _outer(document.get("outer", []), aliases)
    if outer and len(inputs) > _PAIR:
        inputs = tuple(
            _without_retractions(join_input, documents[number], number) for number, join_input in enumerate(inputs)
        )
    emit = cast("Emit", _choice(document, "emit", get_args(Emit)))
    rows, spills = _memory(document["memory"], waits=waits) if "memory" in document else (None, False)
    columns, members = read_members(document.get("return"), aliases, expressions, is_on_close=emit == "on_close")
    body = JoinBody(
        inputs=inputs,
        emit=emit,
        outer=outer,
        columns=columns,
        members=members,
        event_type=_optional(document, "type"),
        late=cast("Late", _choice(document, "late", get_args(Late))),
        memory_rows=rows if spills else None,
        most_rows=None if spills else rows,
        where=_optional(document, "where"),
        results=_limits(document.get("results", {})),
    )
    if body.where is not None and body.optional:
        raise JoinRefused(
            "a join of more than two inputs with 'outer' takes no 'where', as that decides which combinations are part "
            "of no larger one: join two of them first",
            field="where",
        )
    for column in body.columns:
        if column.function == "decided_by" and column.alias not in body.outer:
            raise JoinRefused(
                f"'return' has {column.name}: decided_by({column.alias}), which says why {column.alias} is absent; it "
                "never is unless 'outer' lists it",
                field="return",
            )
    _require_bounds(body)
    return body


def _input(value: object, number: int, default_window: Window) -> JoinInput:
    place = f"inputs[{number}]"
    if not isinstance(value, Mapping):
        raise JoinRefused(f"{place} of a join is an object with 'stream' and 'as'", field=place)
    _require_known(value, _MEMBERS_OF_INPUT, place)
    stream = _text(value, "stream")
    alias = _text(value, "as") if "as" in value else stream
    if not _ALIAS.fullmatch(alias):
        raise JoinRefused(
            f"{place} is called {alias!r}; give it an 'as' of letters, digits and '_', not beginning with a digit",
            field=place,
        )
    types = value.get("type", [])
    closings = value.get("closed_by", [])
    kinds, closing_types = _closings([closings] if isinstance(closings, str | Mapping) else closings, place)
    names = (types,) if isinstance(types, str) else tuple(types) if isinstance(types, Sequence) else None
    if names is None or not all(isinstance(name, str) and name for name in names):
        raise JoinRefused(f"'type' of {place} is the name of an event type, or a list of them", field=place)
    return JoinInput(
        alias=alias,
        stream=stream,
        key=_text(value, "key") if "key" in value else None,
        types=names,
        window=_window(value["window"], f"{place}.window") if "window" in value else default_window,
        closings=kinds,
        closing_types=closing_types,
        **_retractions(value, place),
    )


def _retractions(value: Mapping[str, Any], place: str) -> dict[str, Any]:
    retractions = value.get("retractions", "take")
    if retractions in get_args(Retractions):
        return {"retractions": retractions}
    if (span_us := _duration_us(retractions)) is None:
        raise JoinRefused(
            f"'retractions' of {place} is {retractions!r}; write take or event, or for how long events can be "
            "retracted, such as '2 h'",
            field=f"{place}.retractions",
        )
    return {"retractions_us": span_us}


def _without_retractions(join_input: JoinInput, value: Mapping[str, Any], number: int) -> JoinInput:
    """Return the input with retractions as ordinary events.

    Raise ``JoinRefused`` if it declares ``retractions`` otherwise.
    """
    if value.get("retractions", "event") != "event":
        raise JoinRefused(
            f"'retractions' of inputs[{number}] is {value['retractions']!r}; a join of more than two inputs with "
            "'outer' takes no retractions: leave it out, or join two of them first",
            field=f"inputs[{number}].retractions",
        )
    return replace(join_input, retractions="event")


def _duration_us(value: object) -> int | None:
    """Return the microseconds of a duration such as ``15 min``. None if it is no duration, or is too long."""
    duration_match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    length_us = (
        float(duration_match[1])
        * UNITS_US[duration_match[2][0] if duration_match[2].startswith("w") else duration_match[2]]
        if duration_match
        else 0.0
    )
    return round(length_us) or None if length_us <= _MOST_DURATION_US else None


def _closings(value: object, place: str) -> tuple[frozenset[Closing], frozenset[str]]:
    kinds: set[Closing] = set()
    types: set[str] = set()
    for closing in value if isinstance(value, Sequence) else [value]:
        if isinstance(closing, Mapping) and list(closing) == ["type"] and isinstance(closing["type"], str):
            types.add(closing["type"])
        elif closing in get_args(Closing):
            kinds.add(cast("Closing", closing))
        else:
            raise JoinRefused(
                f"'closed_by' of {place} has {closing!r}; known are {', '.join(get_args(Closing))} and {{type: TYPE}}",
                field=f"{place}.closed_by",
            )
    return frozenset(kinds), frozenset(types)


def _window(value: object, place: str) -> Window:
    if value in ("none", None):
        return Window()
    if (size := _duration_us(value)) is not None:
        return Window("time", size)
    if isinstance(value, Mapping) and list(value) == ["last"] and _is_number(value["last"]):
        return Window("events-of-key", value["last"])
    raise JoinRefused(
        f"{place!r} of a join is {value!r}; write a duration such as '24 h' or '15 min' of at most 2^62 us, "
        f"{{last: 100}} for the newest events of each key (at most {MOST_RESULTS:,}), or none",
        field=place,
    )


def _memory(value: object, *, waits: bool) -> tuple[int, bool]:
    """Return the members ``rows`` and ``spill``: the most events in memory, and whether further events go to disk."""
    if not isinstance(value, Mapping) or not _is_number(value.get("rows")):
        raise JoinRefused(
            f"'memory' of a join is {value!r}; write {{rows: 2000000, spill: true}}: at most this many events of each "
            f"shard (1 to {MOST_RESULTS:,}) are in memory, the others on disk",
            field="memory",
        )
    _require_known(value, ("rows", "spill"), "'memory' of a join")
    spills = value.get("spill", False)
    if spills is not True and not waits:
        raise JoinRefused(
            "'memory' of a join needs 'spill: true' or 'wait: auto': a join whose memory is full would else have to "
            "forget events, and miss results; without 'memory' all events are kept in memory",
            field="memory",
        )
    if not isinstance(spills, bool):
        raise JoinRefused(f"'spill' of the memory of a join is true or false, got {spills!r}", field="memory")
    return value["rows"], spills


def _optional(document: Mapping[str, Any], name: str) -> str | None:
    return None if document.get(name) is None else _text(document, name)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_RESULTS


def _limits(value: object) -> ResultLimits:
    defaults = asdict(ResultLimits())
    if not isinstance(value, Mapping):
        raise JoinRefused(f"'results' of a join is {value!r}; write limits such as {defaults}", field="results")
    _require_known(value, tuple(defaults), "'results' of a join")
    for name, number in value.items():
        if not _is_number(number):
            raise JoinRefused(
                f"{name!r} of the results of a join is {number!r}; write a whole number of 1 to {MOST_RESULTS:,}",
                field=f"results.{name}",
            )
    return ResultLimits(**value)


def _outer(value: object, aliases: Sequence[str]) -> tuple[str, ...]:
    outer = [value] if isinstance(value, str) else value
    if not isinstance(outer, Sequence) or not all(alias in aliases for alias in outer):
        raise JoinRefused(f"'outer' is a list of inputs that may be absent, of {', '.join(aliases)}", field="outer")
    return tuple(dict.fromkeys(outer))


def _require_bounds(body: JoinBody) -> None:
    """Raise ``JoinRefused`` if events of an input may have to be kept for ever, or if ``on_close`` keys never finish.

    An input with a window of time is bounded. So is an input if all other inputs finish their keys. So is an input if
    one other input finishes its keys, has a window of time and may not be absent. Source: the safety check of
    punctuation-aware joins (7.2).
    """
    if body.emit == "on_close" and not any(join_input.closes for join_input in body.inputs):
        raise JoinRefused(
            "emit: on_close needs an input whose keys finish: give one a 'closed_by', or the join 'wait: auto' where "
            "keys are numbers that rise roughly",
            field="emit",
        )
    if body.emit == "on_close" and body.optional and not _finishes(body):
        raise JoinRefused(
            "emit: on_close needs keys that finish: give an input that is not in 'outer' a 'closed_by', or all inputs, "
            "or the join 'wait: auto' where keys are numbers that rise roughly",
            field="emit",
        )
    if body.memory_rows is not None:
        return
    for number, join_input in enumerate(body.inputs):
        others = [other for place, other in enumerate(body.inputs) if place != number]
        is_purged = any(
            other.closes and other.window.kind == "time" and other.alias not in body.outer for other in others
        )
        if is_purged or all(other.closes for other in others):
            continue
        if join_input.window.kind == "none":
            raise JoinRefused(
                f"nothing bounds the events of the input {join_input.alias!r} that are kept: give it a 'window', let "
                "the other inputs say by 'closed_by' when their keys are finished, or give the join a 'memory' with "
                "'spill: true', or 'wait: auto' where keys are numbers that rise roughly",
                field=f"inputs[{number}]",
            )
        if join_input.window.kind == "events-of-key":
            raise JoinRefused(
                f"the newest events of each key of the input {join_input.alias!r} are kept for ever, as no key "
                "finishes: give it a window of time, let the other inputs say by 'closed_by' when their keys are "
                "finished, or give the join a 'memory' with 'spill: true', or 'wait: auto' where keys are numbers that "
                "rise roughly",
                field=f"inputs[{number}]",
            )


def _finishes(body: JoinBody) -> bool:
    """Check whether keys finish: a required input finishes its keys, or all inputs do."""
    required = [join_input.closes for join_input in body.inputs if join_input.alias not in body.outer]
    return any(required) or all(join_input.closes for join_input in body.inputs)


def _require_known(value: Mapping[str, Any], members: Sequence[str], subject: str) -> None:
    if unknown_members := sorted(str(name) for name in value if name not in members):
        raise JoinRefused(
            f"{subject} has {', '.join(unknown_members)}; it takes {', '.join(members)}", field=unknown_members[0]
        )


def _choice(value: Mapping[str, Any], name: str, choices: Sequence[str]) -> str:
    choice = value.get(name, choices[0])
    if choice not in choices:
        raise JoinRefused(f"{name!r} of a join is {choice!r}; write {' or '.join(choices)}", field=name)
    return str(choice)


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not text:
        raise JoinRefused(f"{name!r} of a join is a text, got {text!r}", field=name)
    return text


def readings_of(body: JoinBody) -> list[str]:
    """Return for each input a hash of what it reads: stream, key, event types, treatment of retractions, and ``wait``.

    Inputs of two versions with equal hashes can share merged events. Merged events, control records and saved states
    contain the hash, so it must stay the same in later releases.
    """
    return [
        f"{key_hash(orjson.dumps([number, *_read(join_input), join_input.waits]).decode()):016x}"
        for number, join_input in enumerate(body.inputs)
    ]


def _read(join_input: JoinInput) -> list[Any]:
    return [join_input.stream, join_input.key, sorted({*join_input.types}), join_input.retractions]


def keeps_rows(before: JoinBody, after: JoinBody) -> bool:
    """Check whether a new version of a join can continue with the state of the version before.

    Windows, closings of keys, the condition, the handling of late events, limits, and the members and type of the
    derived events may differ. Inputs, keys, event types, ``emit``, ``outer`` and ``wait`` must be equal. In a join with
    ``outer``, the presence of ``where`` must be equal too. Otherwise the state might contain events that the new
    version would not have stored, or lack events that the new version needs.
    """
    return _fixed(before) == _fixed(after)


def _fixed(body: JoinBody) -> object:
    inputs = [(join_input.alias, *_read(join_input)) for join_input in body.inputs]
    knows_joined = body.where is not None and bool(body.reporting)  # joined: by the condition, not the key
    return inputs, body.emit, frozenset(body.outer), body.waits, knows_joined
