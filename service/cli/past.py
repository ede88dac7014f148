"""Finished transactions of an event file, and how many of them break each constraint of a document."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from constraints import ParsedConstraints, Part
from service.cli.inputs import Times, read_event_file
from service.cli.output import counted
from service.runs.past_log import PastLog
from streams import KeyForm
from streams.readers import ReaderOptions
from workflows import count_violations

EndEvents = Annotated[
    list[str] | None,
    typer.Option("--end", metavar="TYPE", help="Event type that ends a transaction of the log. Repeatable."),
]


def read_log(
    path: Path,
    *,
    key: KeyForm | None,
    times: Times,
    lifecycle: bool,
    classifier: str | None = None,
    end_events: Collection[str] = (),
) -> PastLog:
    """Read the traces of an event file. Every trace counts as finished.

    If no key is given, the file names the key. In XES files, ``classifier`` selects the type of an event. By default,
    it is the event's name, with the transition if ``lifecycle``. One of ``end_events`` ends a trace of its key.
    """
    events = read_event_file(path, ReaderOptions(key=key, times=times, lifecycle=lifecycle, classifier=classifier))
    has_times = times != "line"
    return PastLog.of(
        path.name, ((event.key, event.type, event.time_us if has_times else None) for event in events), end_events
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PastViolations:
    """The number of past traces that violate each constraint, or None if this number is unknown.

    ``source`` is ``log`` if the numbers were counted in a log, and ``mined`` if the constraint document contains them.
    ``traces`` is the number of all traces.
    """

    source: str
    log: str
    traces: int | None
    violations: Mapping[Part, int | None]

    @classmethod
    def counted(cls, parsed: ParsedConstraints, past: PastLog) -> PastViolations:
        """Count violations over the traces of a log."""
        violations = count_violations(parsed.constraint_set, past.traces)
        return cls(source="log", log=past.summary.name, traces=past.summary.traces, violations=violations)

    @classmethod
    def mined(cls, parsed: ParsedConstraints) -> PastViolations | None:
        """Read the numbers of a mined document. Return None for other documents. Invalid numbers count as unknown."""
        if parsed.mined is None:
            return None
        entries = parsed.mined.get("constraints")
        known = {
            entry["constraint"]: _number(entry.get("violations"))
            for entry in (entries if isinstance(entries, list) else [])
            if isinstance(entry, Mapping) and isinstance(entry.get("constraint"), str)
        }
        return cls(
            source="mined",
            log=str(parsed.mined.get("log") or ""),
            traces=_number(parsed.mined.get("traces")),
            violations={part: known.get(str(part)) for part in parsed.constraint_set.parts},
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "log": self.log,
            "traces": self.traces,
            "violations": [{"constraint": str(part), "violations": count} for part, count in self.violations.items()],
        }

    @property
    def lines(self) -> list[str]:
        """The numbers in words, sorted by violations, the highest first."""
        name = f" of {self.log}" if self.log else ""
        traces = "an unknown number of traces" if self.traces is None else counted(self.traces, "trace")
        origin = ", as the document says" if self.source == "mined" else ""
        parts = sorted(self.violations, key=lambda part: -(self.violations[part] or 0))
        return [f"past traces that break a constraint, of {traces}{name}{origin}:", *map(self._line, parts)]

    def _line(self, part: Part) -> str:
        count = self.violations[part]
        if count is None:
            return f"  not known  {part}"
        share = f" ({count / self.traces:.1%})" if self.traces and count else ""
        return f"  {count}{share}  {part}"


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
