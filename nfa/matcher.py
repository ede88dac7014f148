"""The matcher of one stream in one shard: patterns and a guard in, batches in, findings out, state as a value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from nfa import snapshot
from nfa.automata.query import Query
from nfa.errors import PatternRefused, StateFormatError, UnknownPattern
from nfa.finer_keys import rows_with_keys
from nfa.guards import Guard
from nfa.lane import Lane, LaneOptions
from nfa.registered import RegisteredPattern, registered
from nfa.results import LaneOutput, MatcherStats, MatchOutput
from nfa.runs.engine import Ties
from nfa.syntax import Path
from streams import EventBatch

MATCH_LIMIT = 10_000

_SUMMED = ("matches", "timeouts", "overflow", "lost_runs", "held", "peak_held", "nodes", "state_bytes")
_STREAM_KEY: tuple[Path, ...] = ()


class Matcher:
    """Runs patterns over the batches of one stream.

    Every event of the stream must pass through, also those that no pattern listens to: a guard judges whole traces, and
    the newest event says how far time has come.

    Args:
        end_events: Types that end a trace; a later event of the key opens a new one.
        match_limit: Most matches reported per trace, pattern and event; the rest is counted as overflow.
        ties: ``log``: events of one time are ordered as in the log; ``simultaneous``: they are not ordered.
        key_paths: Paths that mean the stream's correlation key, besides ``key``. A pattern whose keys name other paths
            looks at finer traces: events of one correlation key that agree in those attributes too.
        may_be_guarded: Whether ``set_guard`` may be called; if it will not be, traces of which nothing is bound need
            not be known.
    """

    def __init__(
        self,
        *,
        end_events: Iterable[str] = (),
        match_limit: int = MATCH_LIMIT,
        ties: Ties = "log",
        key_paths: Collection[Path] = (),
        may_be_guarded: bool = True,
    ) -> None:
        if match_limit < 1:
            raise ValueError(f"match_limit is {match_limit}: at least 1")
        self._options = LaneOptions(
            end_events=frozenset(end_events), match_limit=match_limit, ties=ties, may_be_guarded=may_be_guarded
        )
        self._key_paths = frozenset({("key",), *key_paths})
        self._patterns: dict[str, RegisteredPattern] = {}
        self._lanes: dict[tuple[Path, ...], Lane] = {_STREAM_KEY: Lane(self._options)}
        self._is_stale = True
        self._is_midway = False

    @property
    def patterns(self) -> Mapping[str, RegisteredPattern]:
        """The registered patterns by name."""
        return MappingProxyType(self._patterns)

    def add_pattern(self, text: str, *, version: int = 1, is_guarded: bool = True) -> Query:
        """Register a pattern from here on; one of the same name is replaced and its partial matches go.

        Args:
            text: The pattern.
            version: Of the pattern.
            is_guarded: Whether guards may end its partial matches; a pattern that looks for violations of what a guard
                knows is not to be.

        Raises:
            PatternRefused: The text is refused.
        """
        pattern = registered(text, version, is_guarded=is_guarded)
        self._patterns.pop(pattern.name, None)
        self._patterns[pattern.name] = pattern
        self._is_stale = True
        return pattern.query

    def remove_pattern(self, name: str) -> None:
        """Forget a pattern and its partial matches.

        Raises:
            UnknownPattern: No pattern of that name is registered.
        """
        if name not in self._patterns:
            known = ", ".join(sorted(self._patterns)) or "none"
            raise UnknownPattern(f"no pattern {name!r} is registered here; registered: {known}", name=name)
        del self._patterns[name]
        self._is_stale = True

    def set_guard(self, version: int, guard: Guard) -> None:
        """Let traces that begin from here on follow a guard; open traces keep theirs.

        Raises:
            ValueError: The matcher was told that no guard would come.
        """
        if not self._options.may_be_guarded:
            raise ValueError("this matcher was made with may_be_guarded=False")
        self._main.set_guard(version, guard)
        self._is_stale = True

    @property
    def guard_versions_in_use(self) -> frozenset[int]:
        """Versions that open traces follow or new traces will."""
        return self._main.guard_versions_in_use

    @property
    def stats(self) -> MatcherStats:
        """Counts so far; events are counted once, whatever keys patterns use."""
        self._compile()
        main, *others = (lane.stats() for lane in self._lanes.values())
        summed = {name: getattr(main, name) for name in MatcherStats.__dataclass_fields__}
        for name in _SUMMED:
            summed[name] += sum(getattr(other, name) for other in others)
        return MatcherStats(**summed)

    def restart_peak(self) -> None:
        """Count ``MatcherStats.peak_held`` from here on."""
        self._compile()
        for lane in self._lanes.values():
            lane.restart_peak()

    def process(self, batch: EventBatch) -> MatchOutput:
        """Match one batch; rows are taken in their order.

        Raises:
            RuntimeError: An earlier batch was interrupted, so that the state is half advanced; load saved state.
        """
        self._check_whole()
        self._compile()
        self._is_midway = True
        found: list[LaneOutput] = []
        for keys, lane in self._lanes.items():
            found.append(lane.process(batch if keys == _STREAM_KEY else rows_with_keys(batch, keys)))
        self._is_midway = False
        return MatchOutput(tuple(found))

    def pass_time(self, watermark_us: int) -> MatchOutput:
        """Decide what is decided once every event before a time has been seen, such as a NOT at the end of a pattern.

        ``process`` does so by itself up to the newest event.
        """
        self._check_whole()
        self._compile()
        return MatchOutput(tuple(lane.pass_time(watermark_us) for lane in self._lanes.values()))

    def finish(self) -> MatchOutput:
        """End every trace: the input is finite, and that was all of it."""
        self._check_whole()
        self._compile()
        return MatchOutput(tuple(lane.finish() for lane in self._lanes.values()))

    def dump(self) -> bytes:
        """The whole state as bytes; ``load`` continues from them as if nothing had happened.

        Raises:
            RuntimeError: A batch was interrupted, so that the state is half advanced.
        """
        self._check_whole()
        self._compile()
        options = self._options
        header = snapshot.Header(
            end_events=sorted(options.end_events),
            match_limit=options.match_limit,
            ties=options.ties,
            key_paths=sorted(list(path) for path in self._key_paths),
            may_be_guarded=options.may_be_guarded,
            patterns=[(one.name, one.version, one.text, one.is_guarded) for one in self._patterns.values()],
            lanes=[],
        )
        return snapshot.dump(header, self._lanes)

    @classmethod
    def load(cls, body: bytes, guards: Mapping[int, Guard]) -> Matcher:
        """A matcher that continues from dumped state.

        Args:
            body: What ``dump`` returned.
            guards: At least the guards of ``guard_versions_in_use`` at the time of the dump.

        Raises:
            StateFormatError: The bytes are damaged, of another version, or name a guard that is not given.
        """
        header, arrays = snapshot.read(body)
        matcher = cls(
            end_events=header.end_events,
            match_limit=header.match_limit,
            ties=header.ties,
            key_paths=[tuple(path) for path in header.key_paths],
            may_be_guarded=header.may_be_guarded,
        )
        try:
            for _, version, text, is_guarded in header.patterns:
                matcher.add_pattern(text, version=version, is_guarded=is_guarded)
        except PatternRefused as error:
            raise StateFormatError(f"saved state holds a pattern that is refused now: {error.message}") from error
        matcher._is_stale = False
        matcher._arrange_lanes()
        snapshot.restore(header, arrays, matcher._lanes, matcher._patterns_by_lane(), guards)
        return matcher

    @property
    def _main(self) -> Lane:
        return self._lanes[_STREAM_KEY]

    def _compile(self) -> None:
        """Tables for the patterns and guards of now; what open traces hold moves along."""
        if not self._is_stale:
            return
        self._arrange_lanes()
        for keys, patterns in self._patterns_by_lane().items():
            self._lanes[keys].configure(patterns)
        self._is_stale = False

    def _arrange_lanes(self) -> None:
        """A lane for each set of keys in use, and always the stream's own."""
        wanted = self._patterns_by_lane()
        self._lanes = {keys: self._lanes.get(keys) or Lane(self._options) for keys in wanted}

    def _patterns_by_lane(self) -> dict[tuple[Path, ...], list[RegisteredPattern]]:
        found: dict[tuple[Path, ...], list[RegisteredPattern]] = {_STREAM_KEY: []}
        for pattern in self._patterns.values():
            keys = tuple(sorted(path for path in pattern.keys if path not in self._key_paths))
            found.setdefault(keys, []).append(pattern)
        return found

    def _check_whole(self) -> None:
        if self._is_midway:
            raise RuntimeError("an earlier batch was interrupted: this matcher is half advanced, load saved state")
