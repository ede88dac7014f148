"""Builds nets and removes superfluous silent steps from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from workflows.errors import ModelRefused
from workflows.nets.net import Places, Transition, WorkflowNet

MOST_STEPS = 50_000


class Assembly:
    """A workflow net under construction. ``places`` has a description of each place in words, in the order of addition.

    Attributes:
        bookkeeping: Places whose tokens only mirror the state of other places.
        numbers: After ``finish``, the index that each remaining place has in the finished net.
    """

    def __init__(self) -> None:
        self.places: list[str] = []
        self.transitions: list[Transition] = []
        self.bookkeeping: set[int] = set()
        self.numbers: dict[int, int] = {}

    def place(self, words: str, is_bookkeeping: bool = False) -> int:
        """Add a place, described by ``words``, and return its index."""
        self.places.append(words)
        if is_bookkeeping:
            self.bookkeeping.add(len(self.places) - 1)
        return len(self.places) - 1

    def step(self, transition: Transition) -> None:
        """Add a transition. Its places may be in any order. More than ``MOST_STEPS`` transitions are refused."""
        self.transitions.append(
            replace(
                transition,
                inputs=tuple(sorted(transition.inputs)),
                outputs=tuple(sorted(transition.outputs)),
                resets=tuple(sorted(set(transition.resets))),
                waits=tuple(sorted(set(transition.waits))),
            )
        )
        if len(self.transitions) > MOST_STEPS:
            problem = f"written out, the model has more than {MOST_STEPS:,} steps; repeat less, or join fewer branches"
            raise ModelRefused([(transition.element, problem)])

    def silent(self, inputs: Iterable[int], outputs: Iterable[int], element: str = "") -> None:
        self.step(Transition(inputs=tuple(inputs), outputs=tuple(outputs), element=element))

    def finish(self, initial: Places, finals: tuple[Places, ...]) -> WorkflowNet:
        """Return the net with its initial and final markings, without superfluous silent steps (``fuse_silent``)."""
        fusion = _Fusion(
            WorkflowNet(
                places=tuple(self.places),
                transitions=tuple(self.transitions),
                initial=tuple(sorted(initial)),
                finals=finals,
            )
        )
        net = fusion.result()
        self.numbers = fusion.numbers()
        return net


def fuse_silent(net: WorkflowNet) -> WorkflowNet:
    """Return a net with the same traces and fewer silent steps and places.

    Two fusions of T. Murata (Petri nets: properties, analysis and applications, 1989, section V) are applied:

    - If the only continuation of a place is one silent step, the place is replaced by the outputs of the step.
    - If only one silent step fills a place, and the steps that take from the place need no other input, the place is
      replaced by the inputs of the silent step.

    Both fusions preserve deadlocks. If steps empty a place or wait until it is empty, the place is removed only if the
    same steps do so with its replacements.
    """
    return _Fusion(net).result()


class _Fusion:
    def __init__(self, net: WorkflowNet) -> None:
        self._net = net
        self._steps: dict[int, Transition] = dict(enumerate(net.transitions))
        self._makers: list[set[int]] = [set() for _ in net.places]
        self._takers: list[set[int]] = [set() for _ in net.places]
        self._watchers: list[set[tuple[int, bool]]] = [set() for _ in net.places]
        for name, step in self._steps.items():
            self._link(name, step)
        self._marked = set(net.initial)
        self._final = {place for final in net.finals for place in final}
        self._gone: set[int] = set()

    def result(self) -> WorkflowNet:
        waiting = list(self._steps)
        while waiting:
            name = waiting.pop()
            step = self._steps.get(name)
            if step is None or step.label is not None or step.resets or step.waits:
                continue
            touched = self._push_on(name, step)
            if touched is None:
                touched = self._pull_back(name, step)
            waiting.extend(touched or ())
        return self._renumbered()

    def _push_on(self, name: int, step: Transition) -> set[int] | None:
        """Remove a silent step with a single input, so that the steps before it fill its outputs directly.

        Returns the steps to examine again, or None if the fusion is not allowed.
        """
        if len(step.inputs) != 1:
            return None
        place = step.inputs[0]
        is_apart = place not in step.outputs and place not in self._marked and place not in self._final
        if self._takers[place] != {name} or not is_apart:
            return None
        if any(self._watchers[other] != self._watchers[place] for other in step.outputs):
            return None
        makers = set(self._makers[place])
        self._drop(name, place)
        for maker in makers:
            self._replace_outputs(maker, place, step.outputs)
        return makers | {taker for other in step.outputs for taker in self._takers[other]}

    def _pull_back(self, name: int, step: Transition) -> set[int] | None:
        """Remove a silent step with a single output, so that the steps after it take its inputs directly.

        Returns the steps to examine again, or None if the fusion is not allowed.
        """
        if len(step.outputs) != 1:
            return None
        place = step.outputs[0]
        is_apart = place not in step.inputs and place not in self._marked and place not in self._final
        if self._makers[place] != {name} or not is_apart or not self._takers[place]:
            return None
        takers = set(self._takers[place])
        if any(self._steps[taker].inputs != (place,) or self._steps[taker].waits for taker in takers):
            return None
        if any(self._watchers[other] != self._watchers[place] for other in step.inputs):
            return None
        self._drop(name, place)
        for taker in takers:
            before = self._steps[taker]
            self._set_step(taker, replace(before, inputs=step.inputs))
        return takers | {maker for other in step.inputs for maker in self._makers[other]}

    def _replace_outputs(self, name: int, place: int, outputs: Places) -> None:
        before = self._steps[name]
        remaining = [other for other in before.outputs if other != place]
        count = len(before.outputs) - len(remaining)
        self._set_step(name, replace(before, outputs=tuple(sorted((*remaining, *(outputs * count))))))

    def _set_step(self, name: int, step: Transition) -> None:
        self._unlink(name)
        self._steps[name] = step
        self._link(name, step)

    def _drop(self, name: int, place: int) -> None:
        self._unlink(name)
        del self._steps[name]
        self._gone.add(place)

    def _link(self, name: int, step: Transition) -> None:
        for place in step.inputs:
            self._takers[place].add(name)
        for place in step.outputs:
            self._makers[place].add(name)
        for is_wait, places in enumerate((step.resets, step.waits)):
            for place in places:
                self._watchers[place].add((name, bool(is_wait)))

    def _unlink(self, name: int) -> None:
        step = self._steps[name]
        for place in step.inputs:
            self._takers[place].discard(name)
        for place in step.outputs:
            self._makers[place].discard(name)
        for is_wait, places in enumerate((step.resets, step.waits)):
            for place in places:
                self._watchers[place].discard((name, bool(is_wait)))

    def numbers(self) -> dict[int, int]:
        remaining = [place for place in range(len(self._net.places)) if place not in self._gone]
        return {place: index for index, place in enumerate(remaining)}

    def _renumbered(self) -> WorkflowNet:
        number = self.numbers()

        def renamed(places: Places) -> Places:
            return tuple(number[place] for place in places if place in number)

        return WorkflowNet(
            places=tuple(self._net.places[place] for place in number),
            transitions=tuple(
                replace(
                    step,
                    inputs=renamed(step.inputs),
                    outputs=renamed(step.outputs),
                    resets=renamed(step.resets),
                    waits=renamed(step.waits),
                )
                for _, step in sorted(self._steps.items())
            ),
            initial=renamed(self._net.initial),
            finals=tuple(renamed(final) for final in self._net.finals),
        )
