"""Nets whose steps are process trees, with rules that reduce a net without changing its traces.

A step takes its tokens, performs a trace of its tree, and puts its tokens. Each rule replaces a few steps by one step
with a larger tree. If only one step is left, its tree is the language of the net. The idea is from S. J. van Zelst, S.
J. J. Leemans, Translating workflow nets to process trees: an algorithmic approach (2020).

Beside plain steps there are splits that put tokens on any non-empty set of their outputs, joins that wait as inclusive
gateways do, and steps that end everything at once. A net may also end with no token instead of one token in a sink.

The rules for inclusive gateways require that no part of the net runs twice at the same time. A net that reduces to one
step satisfies this: the one step fills no place twice, and undoing a rule does not change that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from workflows.nets import normal_forms
from workflows.tree import ProcessTree, Silent

Tokens = frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeTransition:
    """A transition (a step) that performs a trace of a process tree between taking and putting its tokens.

    Attributes:
        is_open_join: Whether the step waits as an inclusive join: until no empty input can get a token. Then it takes a
            token from each filled input.
        is_open_split: Whether the step puts tokens on any one or more of its outputs, instead of all.
        signal: If not empty, the step also ends other steps, as a terminate or throw does. The caller interprets the
            value.
        splits: The splitting element of the model, in words.
    """

    inputs: Tokens
    outputs: Tokens
    tree: ProcessTree = normal_forms.NOTHING
    is_open_join: bool = False
    is_open_split: bool = False
    signal: str = ""
    splits: str = ""

    @property
    def is_link(self) -> bool:
        """Whether the step takes a single token, puts at most one, and has no signal."""
        return len(self.inputs) == 1 and len(self.outputs) <= 1 and not self.signal


@dataclass(frozen=True, slots=True)
class _Branch:
    """The part of a net between a split and a join or end, if it consists of at most one step."""

    begin: int
    step: int | None
    end: int | None
    tree: ProcessTree


class TreeNet:
    """A net of steps (``TreeTransition``) that rules reduce to a single step with a process tree.

    A trace begins with one token on ``source`` and ends with one token on ``sink``. If ``sink`` is None, a trace ends
    with no token. No step puts a token on ``source``. ``words`` has, for each place, the description of the gateway
    there, or an empty text.
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self.steps: dict[int, TreeTransition] = {}
        self._makers: list[set[int]] = []
        self._takers: list[set[int]] = []
        self._waiting: list[int] = []
        self._is_waiting: set[int] = set()
        self._count = 0
        self.sink: int | None = None
        self.source = self.place("")

    def place(self, words: str) -> int:
        """Add a place, described by ``words``, and return its index."""
        self.words.append(words)
        self._makers.append(set())
        self._takers.append(set())
        return len(self.words) - 1

    def add(self, step: TreeTransition) -> int:
        self._count += 1
        self._set_step(self._count, step)
        return self._count

    def link(self, source: int, target: int | None, tree: ProcessTree = normal_forms.NOTHING) -> int:
        """Add a step from one place to another, or to an end if the target is None. Return the key of the step."""
        outputs = frozenset() if target is None else frozenset({target})
        return self.add(TreeTransition(inputs=frozenset({source}), outputs=outputs, tree=tree))

    def change(self, name: int, step: TreeTransition) -> None:
        self._set_step(name, step)

    def tree(self) -> ProcessTree | None:
        """Return the tree of the whole net. None unless the net is reduced to one step from source to sink.

        Without a sink, the step must put no token.
        """
        if len(self.steps) != 1:
            return None
        (step,) = self.steps.values()
        final_places = frozenset() if self.sink is None else frozenset({self.sink})
        is_all = step.inputs == {self.source} and step.outputs == final_places and not step.signal
        return step.tree if is_all else None

    def is_single(self) -> bool:
        """Check that every step puts at most one token. The net then never has more."""
        return all(len(step.outputs) <= 1 for step in self.steps.values())

    def reduce(self) -> None:
        """Apply the reduction rules until none applies.

        A rule replaces a few steps by a single step with a larger tree.
        """
        rules: tuple[Callable[[int], bool], ...] = (
            self._choose,
            self._spin,
            self._pass_on,
            self._pass_back,
            self._chain,
            self._loop,
            self._vanish,
            self._run_beside,
            self._merge_inputs,
            self._gather_splits,
            self._share_split,
            self._share_join,
            self._split_further,
            self._join_further,
        )
        while self._waiting:
            place = self._waiting.pop()
            self._is_waiting.discard(place)
            if any(rule(place) for rule in rules):
                self._wake((place,))

    def _choose(self, place: int) -> bool:
        """Rule: steps with the same inputs, outputs and signal become an exclusive choice."""
        groups: dict[tuple[Tokens, Tokens, str], list[int]] = defaultdict(list)
        for name in self._takers[place]:
            step = self.steps[name]
            if not step.is_open_split and not step.is_open_join:
                groups[step.inputs, step.outputs, step.signal].append(name)
        for names in groups.values():
            if len(names) > 1:
                names.sort()
                first = self.steps[names[0]]
                tree = normal_forms.choice((self.steps[name].tree for name in names), self.words[place])
                self._remove(names[1:])
                self._set_step(names[0], replace(first, tree=tree))
                return True
        return False

    def _spin(self, place: int) -> bool:
        """Rule: steps from a place back to the same place become a loop, which leads from this place to a new place."""
        spinning = sorted(
            name
            for name in self._takers[place]
            if self.steps[name].is_link and self.steps[name].outputs == self.steps[name].inputs
        )
        if not spinning or (len(spinning) == len(self._takers[place]) and place != self.sink):
            return False
        redo = normal_forms.choice((self.steps[name].tree for name in spinning), self.words[place])
        self._remove(spinning)
        if isinstance(redo, Silent):
            return True
        following = self.place(self.words[place])
        if self.sink == place:
            self.sink = following
        for name in list(self._takers[place]):
            step = self.steps[name]
            self._set_step(name, replace(step, inputs=step.inputs - {place} | {following}))
        self.link(place, following, normal_forms.loop(normal_forms.NOTHING, redo, self.words[place]))
        return True

    def _pass_on(self, place: int) -> bool:
        """Rule: if the only continuation of a place is a silent link, the place is replaced by the link's target."""
        if place == self.source or len(self._takers[place]) != 1:
            return False
        (name,) = self._takers[place]
        step = self.steps[name]
        if not step.is_link or not step.outputs or not isinstance(step.tree, Silent) or step.outputs == step.inputs:
            return False
        (target,) = step.outputs
        if any(target in self.steps[maker].outputs for maker in self._makers[place]):
            return False
        self._remove([name])
        for maker in list(self._makers[place]):
            before = self.steps[maker]
            self._set_step(maker, replace(before, outputs=before.outputs - {place} | {target}))
        self.words[target] = self.words[target] or self.words[place]
        return True

    def _pass_back(self, place: int) -> bool:
        """Rule: if only a silent link fills a place, the place is replaced by the source of the link."""
        if place == self.sink or len(self._makers[place]) != 1 or not self._takers[place]:
            return False
        (name,) = self._makers[place]
        step = self.steps[name]
        if not step.is_link or not isinstance(step.tree, Silent) or step.outputs == step.inputs:
            return False
        if any(len(self.steps[taker].inputs) > 1 for taker in self._takers[place]) or step.inputs == {self.source}:
            return False
        (origin,) = step.inputs
        self._remove([name])
        for taker in list(self._takers[place]):
            self._set_step(taker, replace(self.steps[taker], inputs=frozenset({origin})))
        self.words[origin] = self.words[origin] or self.words[place]
        return True

    def _chain(self, place: int) -> bool:
        """Rule: if only one step fills a place, and only one step takes from it, the two steps become a sequence."""
        if len(self._makers[place]) != 1 or len(self._takers[place]) != 1 or place in {self.source, self.sink}:
            return False
        (first_name,), (second_name,) = self._makers[place], self._takers[place]
        first, second = self.steps[first_name], self.steps[second_name]
        if first_name == second_name or len(first.outputs) != 1 or len(second.inputs) != 1:
            return False
        tree = normal_forms.sequence((first.tree, second.tree))
        self._remove([second_name])
        self._set_step(first_name, replace(second, inputs=first.inputs, tree=tree, is_open_join=first.is_open_join))
        return True

    def _loop(self, place: int) -> bool:
        """Rule: the only step from one place to another, together with the steps back, becomes a loop."""
        if len(self._takers[place]) != 1 or place == self.source:
            return False
        (name,) = self._takers[place]
        body = self.steps[name]
        if not body.is_link or not body.outputs or body.outputs == body.inputs:
            return False
        (end,) = body.outputs
        if len(self._makers[end]) != 1:
            return False
        back = sorted(
            taker
            for taker in self._takers[end]
            if self.steps[taker].is_link and self.steps[taker].outputs == body.inputs
        )
        if not back or (len(back) == len(self._takers[end]) and end != self.sink):
            return False
        redo = normal_forms.choice((self.steps[taker].tree for taker in back), self.words[end])
        self._remove(back)
        self._set_step(
            name, replace(body, tree=normal_forms.loop(body.tree, redo, self.words[end] or self.words[place]))
        )
        return True

    def _vanish(self, place: int) -> bool:
        """Rule: a place is removed if its tokens can only disappear without an event."""
        if place in {self.source, self.sink} or len(self._takers[place]) != 1:
            return False
        (name,) = self._takers[place]
        step = self.steps[name]
        if not step.is_link or step.outputs or not isinstance(step.tree, Silent):
            return False
        if any(self.steps[maker].is_open_split for maker in self._makers[place]):
            return False
        self._remove([name])
        for maker in list(self._makers[place]):
            before = self.steps[maker]
            self._set_step(maker, replace(before, outputs=before.outputs - {place}))
        return True

    def _run_beside(self, place: int) -> bool:
        """Rule: branches of one split become a parallel block or an inclusive choice.

        The rule applies if all branches lead to one join, or if each branch has its own end.
        """
        near = self._makers[place] | self._takers[place]
        before = {other for name in self._makers[place] for other in self.steps[name].inputs}
        for split in near.union(*(self._makers[other] for other in before)):
            if len(self.steps[split].outputs) > 1 and self._run_branches(split):
                return True
        return False

    def _run_branches(self, split: int) -> bool:
        groups: dict[int | None, list[_Branch]] = defaultdict(list)
        for place in sorted(self.steps[split].outputs):
            joined_branch = self._branch_from(place)
            if joined_branch is not None:
                join, branch = joined_branch
                groups[join].append(branch)
        for join, branches in groups.items():
            if len(branches) < 2 or join == split:
                continue
            before = self.steps[split]
            is_open_join = join is not None and self.steps[join].is_open_join
            if before.is_open_split and join is not None and not is_open_join:
                continue
            combine = normal_forms.inclusive if before.is_open_split else normal_forms.parallel
            tree = combine((branch.tree for branch in branches), before.splits)
            self._unite(split, join, branches, tree)
            return True
        return False

    def _branch_from(self, place: int) -> tuple[int | None, _Branch] | None:
        """Return the join to which a branch leads, and the branch.

        The branch begins at ``place``, an output of a split. The join is None if the branch ends by itself. The result
        is None if the branch has more than one step.
        """
        if len(self._makers[place]) != 1 or len(self._takers[place]) != 1 or place == self.sink:
            return None
        (name,) = self._takers[place]
        step = self.steps[name]
        if len(step.inputs) > 1:
            return name, _Branch(place, None, place, normal_forms.NOTHING)
        if not step.is_link:
            return None
        if not step.outputs:
            return None, _Branch(place, name, None, step.tree)
        (end,) = step.outputs
        if len(self._makers[end]) != 1 or len(self._takers[end]) != 1 or end == self.sink:
            return None
        (join,) = self._takers[end]
        return (join, _Branch(place, name, end, step.tree)) if len(self.steps[join].inputs) > 1 else None

    def _unite(self, split: int, join: int | None, branches: list[_Branch], tree: ProcessTree) -> None:
        before = self.steps[split]
        begins: Tokens = frozenset(branch.begin for branch in branches)
        begin = self.place("")
        self._remove([branch.step for branch in branches if branch.step is not None])
        outputs = before.outputs - begins | {begin}
        self._set_step(split, replace(before, outputs=outputs, is_open_split=before.is_open_split and len(outputs) > 1))
        if join is None:
            self.link(begin, None, tree)
            return
        after = self.steps[join]
        end = self.place("")
        inputs = after.inputs - frozenset(branch.end for branch in branches if branch.end is not None) | {end}
        self._set_step(join, replace(after, inputs=inputs, is_open_join=after.is_open_join and len(inputs) > 1))
        self.link(begin, end, tree)

    def _merge_inputs(self, place: int) -> bool:
        """Rule: two inputs of an inclusive join become one if a choice fills exactly one of them."""
        for name in sorted(self._takers[place]):
            if len(self._makers[place]) != 1 or len(self._takers[place]) != 1 or not self.steps[name].is_open_join:
                return False
            (maker,) = self._makers[place]
            for other in sorted(self.steps[name].inputs - {place}):
                if len(self._makers[other]) != 1 or len(self._takers[other]) != 1:
                    continue
                (other_maker,) = self._makers[other]
                steps = self.steps[maker], self.steps[other_maker]
                if maker == other_maker or steps[0].inputs != steps[1].inputs or not all(s.is_link for s in steps):
                    continue
                self._set_step(other_maker, replace(steps[1], outputs=frozenset({place})))
                inputs = self.steps[name].inputs - {other}
                self._set_step(name, replace(self.steps[name], inputs=inputs, is_open_join=len(inputs) > 1))
                return True
        return False

    def _gather_splits(self, place: int) -> bool:
        """Rule: splits become an inclusive choice if each non-empty set of branches to a join has its own split.

        If the empty set of branches also has a split, the splits become parallel optional branches instead.
        """
        before = {other for name in self._makers[place] for other in self.steps[name].inputs}
        return any(self._gather_splits_of(other) for other in sorted(before | {place}))

    def _gather_splits_of(self, place: int) -> bool:
        families: dict[int, dict[int, Tokens]] = defaultdict(dict)
        for name in self._takers[place]:
            join_and_places = self._chosen_by(name)
            if join_and_places is not None:
                families[join_and_places[0]][name] = join_and_places[1]
        for join, family in families.items():
            begins = sorted(frozenset().union(*family.values()))
            subsets = set(family.values())
            if not begins or not subsets >= {frozenset({begin}) for begin in begins}:
                continue
            if not self._is_closed(join, family) or len(subsets) < 2 ** len(begins) - 1:
                continue
            trees = [self.steps[next(iter(self._takers[begin]))].tree for begin in begins]
            if len(subsets) == 2 ** len(begins):
                trees = [normal_forms.choice((tree, normal_forms.NOTHING)) for tree in trees]
                tree = normal_forms.parallel(trees, self.words[place])
            else:
                tree = normal_forms.inclusive(trees, self.words[place])
            self._remove([name for begin in begins for name in list(self._takers[begin])])
            self._remove(family)
            following = self.place("")
            self._set_step(join, replace(self.steps[join], inputs=frozenset({following})))
            self.link(place, following, tree)
            return True
        return False

    def _chosen_by(self, name: int) -> tuple[int, Tokens] | None:
        """Return the join to which a silent split leads, and the first places of the branches that are not skipped.

        A branch is skipped if the split fills an input of the join. The result is None if the split has another form.
        """
        step = self.steps[name]
        if len(step.inputs) > 1 or len(step.outputs) < 2 or step.is_open_split or not isinstance(step.tree, Silent):
            return None
        ends: dict[int, int] = {}
        for place in step.outputs:
            if len(self._takers[place]) != 1:
                return None
            (taker,) = self._takers[place]
            after = self.steps[taker]
            is_branch = after.is_link and len(after.outputs) == 1
            ends[next(iter(after.outputs)) if is_branch else place] = place
        joins = {taker for end in ends for taker in self._takers[end]}
        if len(joins) != 1:
            return None
        (join,) = joins
        after = self.steps[join]
        if after.is_open_join or len(ends) < len(step.outputs) or after.inputs != frozenset(ends):
            return None
        return join, frozenset(place for end, place in ends.items() if end != place)

    def _is_closed(self, join: int, family: dict[int, Tokens]) -> bool:
        """Check whether only the splits in ``family``, and their branches, fill the inputs of the join."""
        branches: set[int] = set()
        for begin in frozenset().union(*family.values()):
            if not self._makers[begin] <= family.keys():
                return False
            branches |= self._takers[begin]
        allowed = branches | family.keys()
        inputs = self.steps[join].inputs
        return all(self._makers[end] <= allowed and self._takers[end] == {join} for end in inputs)

    def _share_split(self, place: int) -> bool:
        """Rule: if the same steps, and only these, fill several places, they get one common split to these places."""
        makers = self._makers[place]
        if len(makers) < 2 or any(self.steps[name].is_open_split for name in makers):
            return False
        shared = frozenset.intersection(*(self.steps[name].outputs for name in makers))
        shared = frozenset(other for other in shared if self._makers[other] == makers and other != self.sink)
        if len(shared) < 2:
            return False
        middle = self.place("")
        for name in list(makers):
            step = self.steps[name]
            self._set_step(name, replace(step, outputs=step.outputs - shared | {middle}))
        self.add(TreeTransition(inputs=frozenset({middle}), outputs=shared))
        return True

    def _share_join(self, place: int) -> bool:
        """Rule: if the same steps, and only these, take from several places, they get one common join of the places."""
        takers = self._takers[place]
        if len(takers) < 2 or any(self.steps[name].is_open_join for name in takers) or place == self.sink:
            return False
        shared = frozenset.intersection(*(self.steps[name].inputs for name in takers))
        shared = frozenset(other for other in shared if self._takers[other] == takers and other != self.sink)
        if len(shared) < 2:
            return False
        middle = self.place(next((self.words[other] for other in sorted(shared) if self.words[other]), ""))
        for name in list(takers):
            step = self.steps[name]
            self._set_step(name, replace(step, inputs=step.inputs - shared | {middle}))
        self.add(TreeTransition(inputs=shared, outputs=frozenset({middle})))
        return True

    def _split_further(self, place: int) -> bool:
        """Rule: if an output of a split leads only to another split, the second split is merged into the first."""
        names = self._between(place)
        if names is None:
            return False
        first, second = (self.steps[name] for name in names)
        if len(second.inputs) > 1 or not isinstance(second.tree, Silent) or first.outputs & second.outputs:
            return False
        if any(len(self._takers[other]) > 1 for other in first.inputs):
            return False  # another rule handles a choice between splits as a whole
        self._remove([names[1]])
        self._set_step(names[0], replace(first, outputs=first.outputs - {place} | second.outputs))
        return True

    def _join_further(self, place: int) -> bool:
        """Rule: if a join leads only to another join, the first join is merged into the second."""
        names = self._between(place)
        if names is None:
            return False
        first, second = (self.steps[name] for name in names)
        if len(first.outputs) > 1 or not isinstance(first.tree, Silent) or first.inputs & second.inputs:
            return False
        if any(len(self._makers[other]) > 1 for other in first.inputs):
            return False  # another rule handles places that several splits fill as a whole
        self._remove([names[0]])
        self._set_step(names[1], replace(second, inputs=second.inputs - {place} | first.inputs))
        return True

    def _between(self, place: int) -> tuple[int, int] | None:
        if len(self._makers[place]) != 1 or len(self._takers[place]) != 1 or place in {self.source, self.sink}:
            return None
        (first,), (second,) = self._makers[place], self._takers[place]
        steps = self.steps[first], self.steps[second]
        if first == second or any(step.is_open_split or step.is_open_join or step.signal for step in steps):
            return None
        return first, second

    def _set_step(self, name: int, step: TreeTransition) -> None:
        if name in self.steps:
            self._unlink(name)
        self.steps[name] = step
        for place in step.inputs:
            self._takers[place].add(name)
        for place in step.outputs:
            self._makers[place].add(name)
        self._wake(step.inputs)
        self._wake(step.outputs)

    def _remove(self, names: Iterable[int]) -> None:
        for name in names:
            self._unlink(name)
            del self.steps[name]

    def _unlink(self, name: int) -> None:
        step = self.steps[name]
        for place in step.inputs:
            self._takers[place].discard(name)
        for place in step.outputs:
            self._makers[place].discard(name)
        self._wake(step.inputs)
        self._wake(step.outputs)

    def _wake(self, places: Iterable[int]) -> None:
        for place in places:
            if place not in self._is_waiting:
                self._is_waiting.add(place)
                self._waiting.append(place)
