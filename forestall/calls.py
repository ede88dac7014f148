"""A call of ``forestall.match``. It checks the arguments, and then matches a table of events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from forestall.errors import FrameRefused
from forestall.frames import read_frame
from forestall.match_columns import MatchForm
from forestall.match_result import LocalMatchResult
from forestall.reading import ColumnNames, event_id_type, kinds_in
from forestall.row_columns import OUTPUTS
from forestall.rules import ConstraintsLike, ModelLike, PatternLike, constraints_of, model_of, patterns_of, tables_of
from nfa import Prune, require_key
from service import RunRules, StreamRun, WorkflowUse, exercises_of, follow_model
from streams import KeyForm, StreamDeclaration, key_names, listed
from streams.compiling import compile_kernels
from streams.readers import batch_of_table, columns_read

if TYPE_CHECKING:
    from constraints import ConstraintSet  # slow to import, and rarely needed
    from workflows import WorkflowModel

Follow: TypeAlias = Literal["auto", "exact", "tables"]
Pruning: TypeAlias = Literal["state", "query", "shadow", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallArguments:
    """The arguments of ``match`` besides patterns and columns."""

    constraints: ConstraintsLike | None
    workflow: ModelLike | None
    follow: Follow
    prune: Pruning | None
    stream: Mapping[str, Any] | None
    tables: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Matching:
    """A call of ``match`` with checked arguments. Its events have not been read yet.

    Attributes:
        names: The columns of the events.
        rules: The patterns, the stream and the constraints.
        use: How a model is followed.
        model: The followed model, or None.
        outputs: The lists of results that are kept.
        notices: Probable mistakes, in words.
    """

    names: ColumnNames
    rules: RunRules
    use: WorkflowUse | None
    model: WorkflowModel | None
    outputs: tuple[str, ...]
    notices: tuple[str, ...]

    @classmethod
    def of(
        cls,
        pattern: PatternLike | Iterable[PatternLike],
        names: ColumnNames,
        arguments: CallArguments,
        outputs: Collection[str],
        *,
        is_open: bool,
    ) -> Matching:
        """Check the arguments of a call of ``match``, and return them parsed.

        Raises:
            ForestallError: An argument is refused.
        """
        if unknown := sorted(set(outputs) - set(OUTPUTS)):
            raise FrameRefused(f"outputs: {listed(unknown)} is unknown; choose from {', '.join(OUTPUTS)}")
        patterns, declaration = patterns_of(pattern), _declaration(arguments.stream, names.key)
        for parsed_pattern in patterns if not declaration.keys else ():
            first_key = parsed_pattern.keys[0][-1] if parsed_pattern.keys else ""
            require_key(
                parsed_pattern, () if names.key is None else key_names(names.key), f", or use key={first_key!r}"
            )
        constraint_set, followed, notices = _followed(arguments)
        prune = None if arguments.prune is None else Prune(arguments.prune)
        rules = RunRules(
            patterns=patterns,
            declaration=declaration,
            own=constraint_set,
            prune=prune,
            is_open=is_open,
            tables=tables_of(arguments.tables),
        )
        notices += rules.notices()
        use, model = (None, None) if followed is None else followed
        return cls(names=names, rules=rules, use=use, model=model, outputs=tuple(outputs), notices=tuple(notices))

    def run(self, events: Any) -> LocalMatchResult[Any]:
        """Match the events of a table."""
        rules, dropped = self.rules, list[int]()
        options = replace(self.names.options(rules.declaration), on_dropped=dropped.append)
        frame = read_frame(
            events, lambda column_names: columns_read(column_names, options, rules.read), options.columns.time or "time"
        )
        batch = batch_of_table(frame.table, options, rules.read, is_compact=True)
        compile_kernels(exercises_of(rules.plan))
        run = StreamRun(rules.plan, lists=[OUTPUTS[name] for name in self.outputs])
        run.feed(batch)
        report = replace(run.report(is_open=rules.is_open), workflow=self.use, duplicates=sum(dropped))
        return LocalMatchResult(
            report=report,
            form=MatchForm.of(rules.patterns, kinds_in(batch, rules), event_id_type(frame.table, options)),
            back=frame.back,
            events=batch,
            model=self.model,
            outputs=self.outputs,
            notices=(*self.notices, *rules.event_notices(batch)),
        )


def _declaration(stream: Mapping[str, Any] | None, key: KeyForm | None) -> StreamDeclaration:
    members = dict(stream or {})
    if "key" in members and key is not None:
        raise FrameRefused("the key is given twice: as key, and as a member of stream; give it once")
    return StreamDeclaration.from_json({"name": "file", "key": key or "key", **members})


def _followed(
    arguments: CallArguments,
) -> tuple[ConstraintSet | None, tuple[WorkflowUse, WorkflowModel] | None, list[str]]:
    """Return three results: the constraints, the followed model with its use, and notices.

    The constraints include those of the model. The second result is None without a model.
    """
    notices: list[str] = []
    constraint_set = constraints_of(arguments.constraints, notices)
    if arguments.workflow is None:
        return constraint_set, None, notices
    model, name = model_of(arguments.workflow)
    followed_model = follow_model(constraint_set, model, name, arguments.follow)
    return (
        followed_model.constraint_set,
        (followed_model.use, model),
        [*notices, *followed_model.warnings, followed_model.explanation],
    )
