"""Computes the concurrency relation of a net: the pairs of places that may have tokens at the same time.

This is the least concurrency relation of A. Kovalyov and J. Esparza (A polynomial algorithm to compute the concurrency
relation of free-choice signal transition graphs, 1996). For any net it contains every pair of places that a reachable
marking marks together, and possibly more pairs. A set of places is an integer with bit ``p`` for the place ``p``.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from constraints import bits_of, members
from workflows.nets.net import Places, Transition


def concurrency(places: int, initial: Places, transitions: Sequence[Transition]) -> list[int]:
    """Return, for each place of a net, the set of places that may be marked at the same time, as bits.

    The set contains the place itself if the place may have two tokens. Reset and inhibitor arcs are ignored, so the
    result can only become larger. The caller may leave out transitions that never fire.
    """
    return _Concurrency(places, initial, transitions).beside


class _Concurrency:
    def __init__(self, places: int, initial: Places, transitions: Sequence[Transition]) -> None:
        self._transitions = transitions
        self._marked = 0
        self.beside = [0] * places
        self._readers: list[list[int]] = [[] for _ in range(places)]
        for number, transition in enumerate(transitions):
            for place in set(transition.inputs):
                self._readers[place].append(number)
        self._waiting = deque(range(len(transitions)))
        self._is_waiting = [True] * len(transitions)
        self._put_together(initial)
        while self._waiting:
            number = self._waiting.popleft()
            self._is_waiting[number] = False
            self._fire(transitions[number])

    def _fire(self, transition: Transition) -> None:
        """Add the concurrent places that a transition causes, if it can fire.

        Its outputs are concurrent with each other, and with each place that is concurrent with all inputs.
        """
        if not self._can_happen(transition):
            return
        others = common(self.beside, transition.inputs, (1 << len(self.beside)) - 1)
        self._put_together(transition.outputs)
        for place in set(transition.outputs):
            self._put_beside(place, others)

    def _can_happen(self, transition: Transition) -> bool:
        amounts = Counter(transition.inputs)
        inputs = bits_of(amounts)
        if inputs & ~self._marked:
            return False
        return all(
            inputs & ~(1 << place) & ~self.beside[place] == 0 and (amount == 1 or self.beside[place] >> place & 1)
            for place, amount in amounts.items()
        )

    def _put_together(self, places: Places) -> None:
        amounts = Counter(places)
        everything = bits_of(amounts)
        for place, amount in amounts.items():
            if not self._marked >> place & 1:
                self._marked |= 1 << place
                self._wake(place)
            self._put_beside(place, everything if amount > 1 else everything & ~(1 << place))

    def _put_beside(self, place: int, others: int) -> None:
        new = others & ~self.beside[place]
        if not new:
            return
        self.beside[place] |= new
        self._wake(place)
        for other in members(new):
            if not self.beside[other] >> place & 1:
                self.beside[other] |= 1 << place
                self._wake(other)

    def _wake(self, place: int) -> None:
        for number in self._readers[place]:
            if not self._is_waiting[number]:
                self._is_waiting[number] = True
                self._waiting.append(number)


def common(beside: Sequence[int], places: Places, everything: int) -> int:
    """Return the set of places that may be marked together with every one of ``places``, as bits.

    ``beside`` is the result of ``concurrency``. ``everything`` is the set of all places.
    """
    for place in set(places):
        everything &= beside[place]
    return everything
