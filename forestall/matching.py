"""``forestall.match``: patterns over a table of events, in this process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from forestall.errors import FrameRefused
from forestall.frames import read_frame
from forestall.match_columns import MatchForm
from forestall.match_result import OUTPUTS, MatchResult
from forestall.reading import ColumnNames, event_type_of, kinds_in, read_by
from forestall.rules import ConstraintsLike, ModelLike, PatternLike, constraints_of, model_of, patterns_of
from nfa import Prune, require_key
from service.registering.strangers import strangers
from service.runs.run_rules import RunRules
from service.runs.stream_report import WorkflowUse
from service.runs.stream_run import StreamRun, exercises_of
from streams import KeyForm, StreamDeclaration, key_names, listed
from streams.compiling import compile_kernels
from streams.readers import batch_of_table

if TYPE_CHECKING:
    from constraints import ConstraintSet  # takes long to import, and most calls need none

FrameT = TypeVar("FrameT")


def match(
    events: FrameT,
    pattern: PatternLike | Iterable[PatternLike],
    *,
    key: KeyForm | None = None,
    time: str | None = None,
    type: str | None = None,
    id: str | Sequence[str] | None = None,
    zone: str | None = None,
    constraints: ConstraintsLike | None = None,
    workflow: ModelLike | None = None,
    follow: Literal["auto", "exact", "tables"] = "auto",
    prune: Literal["state", "query", "shadow", "off"] | None = None,
    stream: Mapping[str, Any] | None = None,
    suppress: Mapping[str, Any] | None = None,
    outputs: Collection[str] = OUTPUTS,
    is_open: bool = False,
) -> MatchResult[FrameT]:
    """Match patterns in a table of events.

    The results are those of ``forestall match`` on the same events.

    Args:
        events: A list of dictionaries, a DataFrame of pandas or polars, a table or dataset of Arrow, or a relation of
            DuckDB: a row for each event, in any order.
        pattern: A pattern or several: text, a ``Path``, or the JSON form as a dictionary.
        key: Column of the correlation key, or a column by event type (default: ``key``).
        time: Column of the time (default: ``time``).
        type: Column of the event type (default: ``type``).
        id: Column of the event's id, or several that make one (default: ``id``, otherwise the number of the row).
        zone: Time zone of times without one (default: UTC).
        constraints: A constraint document: text, a ``Path``, a dictionary, or a list of constraints.
        workflow: A model that the transactions follow: text or a ``Path`` (BPMN, PNML, or a process tree as YAML).
        follow: How the model is followed: by its automaton, by the constraints that hold in it, or whichever is best.
        prune: What is dropped of partial matches that cannot complete (default: as in the constraints).
        stream: Further members of a stream's document, such as ``end_events``, ``ties``, ``lateness``,
            ``idle_timeout``, ``keys`` or ``duplicates``.
        suppress: Suppresses alerts that follow another one of their group: ``{"by": ["customer"], "for": "1 h"}``.
        outputs: The lists of results that are kept; everything is counted.
        is_open: Whether transactions continue after the last event (default: they end with it).

    Raises:
        ForestallError: A pattern, the constraints, the model or the table is refused; the message says why.
    """
    if unknown := sorted(set(outputs) - set(OUTPUTS)):
        raise FrameRefused(f"outputs: {listed(unknown)} is unknown; choose from {', '.join(OUTPUTS)}")
    notices: list[str] = []
    patterns, declaration = patterns_of(pattern), _declaration(stream, key)
    if not declaration.keys:
        for one in patterns:
            require_key(
                one, () if key is None else key_names(key), f", or use key={one.keys[0][-1] if one.keys else ''!r}"
            )
    own, use = _followed(constraints, workflow, follow, notices)
    rules = RunRules(
        patterns=patterns,
        declaration=declaration,
        own=own,
        prune=None if prune is None else Prune(prune),
        is_open=is_open,
        suppress=suppress,
    )
    notices.extend(rules.notices())
    names = ColumnNames(key=key, time=time, type=type, id=id, zone=zone)
    read = None if own is not None and own.conditions else read_by(patterns, declaration)
    frame, dropped = read_frame(events), list[int]()
    options = replace(names.options(declaration), on_dropped=dropped.append)
    batch = batch_of_table(frame.table, options, read)
    compile_kernels(exercises_of(rules.plan))
    notices += [f"{one.name}: {notice.placed}" for one, notice in strangers(patterns, batch)]
    run = StreamRun(rules.plan, lists=[OUTPUTS[name] for name in outputs])
    run.feed(batch)
    report = replace(run.report(is_open=is_open), workflow=use, duplicates=sum(dropped))
    form = MatchForm.of(patterns, kinds_in(batch), event_type_of(frame.table, options))
    return MatchResult(report=report, form=form, back=frame.back, outputs=tuple(outputs), notices=tuple(notices))


def _declaration(stream: Mapping[str, Any] | None, key: KeyForm | None) -> StreamDeclaration:
    """The stream of the events."""
    given = dict(stream or {})
    if "key" in given and key is not None:
        raise FrameRefused("the key is given twice: as key, and as a member of stream; give it once")
    return StreamDeclaration.from_json({"name": "file", "key": key or "key", **given})


def _followed(
    constraints: ConstraintsLike | None,
    workflow: ModelLike | None,
    mode: Literal["auto", "exact", "tables"],
    notices: list[str],
) -> tuple[ConstraintSet | None, WorkflowUse | None]:
    """The constraints joined with those of a model, and how the model is followed."""
    own = constraints_of(constraints, notices)
    if workflow is None:
        return own, None
    from service.runs.followed_model import follow_model  # noqa: PLC0415 - takes long, and most calls need none

    found = follow_model(own, *model_of(workflow), mode)
    notices += [*found.warnings, found.explanation]
    return found.constraint_set, found.use
