"""The plan of runs. The most informative runs are first."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peers.cases import Case
from benchmarks.peers.running import Run
from benchmarks.peers.systems import SHARDS, SYSTEMS, UNFILTERED, Mode, System


def plan(
    cases: Sequence[Case],
    systems: Sequence[System],
    *,
    is_quick: bool = False,
    events: int | None = None,
    names: Sequence[str] | None = None,
) -> list[Run]:
    """Return the runs of all cases.

    Args:
        cases: The cases to choose from.
        systems: The engines to run.
        is_quick: Whether to use few events, without the cases that have no quick run.
        events: The maximum number of events of a run.
        names: The names of the cases to run. None means all.

    Returns:
        The runs, case by case. To compare answers, the library also runs each number of events of other engines.
    """
    runs: list[Run] = []
    for case in cases:
        full = min(case.quick if is_quick else case.events, events or case.events)
        if full == 0 or (names and case.name not in names):
            continue
        own = [run for system in systems for run in _runs(case, system, full)]
        library = next(system for system in SYSTEMS if system.name == "library")
        had = {run.events for run in own if run.system is library and run.mode == library.modes[0]}
        own += [
            Run(case=case, system=library, mode=library.modes[0], events=size)
            for size in sorted({run.events for run in own} - had)
        ]
        runs += own
    return runs


def _runs(case: Case, system: System, full: int) -> list[Run]:
    wording = case.wording(system.wording)
    if wording.cannot or ((case.is_join or case.is_aggregate) and system.is_command):
        return []
    modes = [mode for mode in system.modes if (case.is_main or mode.is_usual) and _is_told(mode, case, wording.types)]
    return [
        Run(
            case=case,
            system=system,
            mode=mode,
            events=min(full, wording.most or full, system.most.get(mode.variant, full)),
        )
        for mode in modes
    ]


def _is_told(mode: Mode, case: Case, types: Sequence[str]) -> bool:
    """Return whether a mode applies to a case.

    Shards run joins only. A mode without the filter applies only if the case has a filter.
    """
    return case.is_join if mode.variant == SHARDS else mode.variant != UNFILTERED or bool(types)
