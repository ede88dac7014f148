"""What bit tables mean: traces followed on Python integers, as the kernel follows them on words."""

from collections.abc import Iterable

from constraints.monitoring import bit_tables
from constraints.monitoring.bit_tables import BitState
from constraints.sets import members, union
from nfa import BitGoal


class BitTables(bit_tables.BitTables):
    """Bit tables that also follow traces."""

    @property
    def start(self) -> BitState:
        return self._start

    def enter(self, seen: Iterable[str]) -> BitState:
        """The state of a trace that has shown these names, which must be consistent."""
        return self._with(self._start, self.mask(seen))

    def update(self, state: BitState, shown: int) -> BitState | None:
        """The state after one more event, or None if the trace deviates at it."""
        if shown & state.blocked:
            return None
        if shown & ~state.seen == 0:
            return state
        after = self._with(state, shown)
        is_broken = after.certain & after.gone or any(mask & ~after.certain == 0 for mask in self._broken)
        return None if is_broken else after

    def is_dead(self, state: BitState, goal: BitGoal) -> bool:
        """Whether it is certain that nothing can complete a goal any more."""
        if goal.needs & state.blocked or goal.implies & state.gone:
            return True
        return any(mask & ~state.certain == 0 for mask in goal.conflicts)

    def _with(self, state: BitState, shown: int) -> BitState:
        blocked = state.blocked | union(self._blocks[name] for name in members(shown))
        certain = union(self._requires[name] for name in members(shown))
        return self._settled(state._replace(seen=state.seen | shown, blocked=blocked), certain)
