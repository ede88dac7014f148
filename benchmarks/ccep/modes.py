"""The modes R-CEP and C-CEP: the knowledge and the pruning of each, and its oracle in the replay."""

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
    """One way to run a pattern.

    Attributes:
        name: Name in tables.
        prune: The pruning.
        oracle: The oracle of the replay, by definition; None: R-CEP.
        constraint_set: The constraints of the matcher's guard; None: the matcher has no guard (R-CEP) or cannot run it.
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
        """A fresh guard without any memory; None for R-CEP."""
        if self.constraint_set is None:
            return None
        return Monitor(replace(self.constraint_set, settings=Settings(prune=self.prune)))


R_CEP = "R-CEP"


def all_modes() -> Mapping[str, Mode]:
    """All modes, R-CEP first; ``free`` is exact mode with the loop left open, ``exact`` with the loop unrolled.

    With the loop open, exact mode should hold the same as ``state``, so it has the same oracle.
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
