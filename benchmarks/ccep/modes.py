"""The modes of R-CEP and C-CEP. A mode has constraints or none, a pruning policy, and an oracle for the replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from benchmarks.ccep.knowledge import NAMED, ConstraintOracle, LanguageOracle, extracted, known_exactly
from benchmarks.ccep.occupancy import Oracle
from constraints import ConstraintSet, Monitor, Settings
from nfa import Guard, Prune


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A mode in which a pattern is run.

    Attributes:
        name: The name in tables.
        prune: The pruning.
        oracle: The oracle of the replay, by definition. None means R-CEP.
        constraint_set: The constraints of the matcher's guard. None means that the matcher has no guard (R-CEP), or
            cannot run the mode.
    """

    name: str
    prune: Prune = Prune.OFF
    oracle: Oracle | None = None
    constraint_set: ConstraintSet | None = None

    @property
    def is_run(self) -> bool:
        """Whether the matcher can run this mode."""
        return self.oracle is None or self.constraint_set is not None

    def guard(self) -> Guard | None:
        """Return a fresh guard without any state. For R-CEP, return None."""
        if self.constraint_set is None:
            return None
        return Monitor(replace(self.constraint_set, settings=Settings(prune=self.prune)))


R_CEP = "R-CEP"


def all_modes() -> Mapping[str, Mode]:
    """Return all modes, R-CEP first. ``free`` is exact mode with the loop left open, ``exact`` with the loop unrolled.

    With the loop open, exact mode should retain the same bound events as ``state``, so both have the same oracle.
    """
    everything = extracted()
    modes = (
        Mode(name=R_CEP),
        Mode(name="query", prune=Prune.QUERY, oracle=ConstraintOracle(NAMED), constraint_set=NAMED),
        Mode(name="state", prune=Prune.STATE, oracle=ConstraintOracle(everything), constraint_set=everything),
        Mode(name="free", prune=Prune.STATE, oracle=ConstraintOracle(everything), constraint_set=known_exactly(None)),
        Mode(name="exact", prune=Prune.STATE, oracle=LanguageOracle(), constraint_set=known_exactly(3)),
    )
    return MappingProxyType({mode.name: mode for mode in modes})
