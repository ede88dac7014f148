"""Reads tree files: a name, a tree, and simulation settings; documented in docs/workflow-tree.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from workflows.attributes import Attribute
from workflows.durations import Duration
from workflows.errors import InvalidWorkflow, ModelRefused
from workflows.formats.entries import Entry, Listing, Mapped, Scalar, at_line, read_entries
from workflows.formats.mapping import event_type, label_problem, unused_keys
from workflows.formats.tree_form.problems import Problems, place_of
from workflows.formats.tree_form.settings import read_attributes, read_duration, read_probability, whole_number
from workflows.model import ModelFormat, ModelNotice, ReadOptions, WorkflowModel
from workflows.naming import normalised
from workflows.tree import (
    Activity,
    ExclusiveChoice,
    InclusiveChoice,
    Loop,
    Parallel,
    ProcessTree,
    Sequence,
    Silent,
)

MAX_NODES = 10_000
MAX_REPETITIONS = 1_000

_KEYS = ("name", "tree", "attributes", "duration")
_LEAF_KEYS = ("activity", "attributes", "duration", "probability")
_SILENT = "tau"


def read_tree(content: bytes, options: ReadOptions) -> WorkflowModel:
    """The process tree of a YAML or JSON text."""
    entry = read_entries(content)
    if options.process is not None:
        raise ModelRefused([("", f"a tree file has one process without id; there is no process {options.process!r}")])
    if not isinstance(entry, Mapped):
        raise ModelRefused([(at_line(entry.line), "a tree file is a mapping with name and tree")])
    problems = Problems()
    for key, _ in entry.pairs:
        if key.text not in _KEYS:
            problems.refuse(key.text, key, f"unknown key; a tree file has {', '.join(_KEYS)}")
    name = _read_name(entry.get("name"), problems)
    attributes, duration = _leaf_settings(entry, "", problems)
    reader = _Reader(problems, _Defaults(attributes, duration), options.mapping)
    root = entry.get("tree")
    tree: ProcessTree = Silent()
    if root is None:
        problems.refuse("", entry, "there is no tree; write tree: and the root node")
    else:
        tree = reader.node(root, "tree")
    problems.finish()
    notices = (*reader.notices, *unused_keys(options.mapping, reader.names))
    return WorkflowModel(name=name, format=ModelFormat.TREE, source=tree, notices=notices)


@dataclass(frozen=True, slots=True)
class _Defaults:
    """The default settings of activities without settings of their own."""

    attributes: tuple[Attribute, ...]
    duration: Duration | None


@dataclass(frozen=True, slots=True)
class _Branch:
    """A branch of a choice; None without a probability of its own."""

    tree: ProcessTree
    probability: float | None


class _Reader:
    """Converts entries to nodes; a node with a problem becomes silent, so that all problems are found."""

    def __init__(self, problems: Problems, defaults: _Defaults, mapping: Mapping[str, str | None]) -> None:
        self.names: set[str] = set()
        self.notices: list[ModelNotice] = []
        self._problems = problems
        self._defaults = defaults
        self._mapping = mapping
        self._count = 0
        self._operators: Mapping[str, Callable[[Entry, str, str], ProcessTree]] = {
            "sequence": self._sequence,
            "xor": self._xor,
            "and": self._and,
            "or": self._or,
            "loop": self._loop,
            "optional": self._optional,
        }

    def node(self, entry: Entry, path: str) -> ProcessTree:
        """A leaf, or an operator with everything below it."""
        self._count += 1
        if self._count > MAX_NODES:
            self._problems.refuse(path, entry, f"the tree has more than {MAX_NODES:,} nodes")
            self._problems.finish()
        if isinstance(entry, Scalar):
            return self._bare_leaf(entry, path)
        if isinstance(entry, Listing):
            return self._refused(path, entry, "a list must be under an operator, such as sequence: [..]")
        if "activity" in entry.keys:
            return self._full_leaf(entry, path)
        if len(entry.pairs) != 1:
            return self._refused(path, entry, _several_keys(entry))
        key, value = entry.pairs[0]
        if key.text not in self._operators:
            return self._refused(path, key, self._unknown(key.text))
        try:
            return self._operators[key.text](value, f"{path}.{key.text}", place_of(f"{path}.{key.text}", key))
        except InvalidWorkflow as error:
            return self._refused(f"{path}.{key.text}", key, error.message)

    def _unknown(self, key: str) -> str:
        if key == "branch":
            return "a branch must be in the list of xor or or, or under optional"
        return f"unknown operator {key!r}; there are {', '.join(self._operators)}"

    def _refused(self, path: str, entry: Entry, message: str) -> ProcessTree:
        self._problems.refuse(path, entry, message)
        return Silent()

    def _bare_leaf(self, entry: Scalar, path: str) -> ProcessTree:
        if entry.is_null and not entry.text:
            return self._refused(path, entry, f"the node is empty; the silent step is written {_SILENT}")
        if entry.is_null or (entry.text == _SILENT and not entry.is_quoted):
            return Silent()
        return self._activity(entry, path, self._defaults)

    def _activity(self, entry: Entry, path: str, settings: _Defaults) -> ProcessTree:
        if not isinstance(entry, Scalar) or not entry.is_text:
            written = entry.text if isinstance(entry, Scalar) else "Check credit"
            return self._refused(path, entry, f'an activity is a text; put quotes around it: "{written}"')
        problem = label_problem(entry.text)
        if problem is not None:
            return self._refused(path, entry, problem)
        name, place = normalised(entry.text), place_of(path, entry)
        if name == _SILENT:
            self.notices.append(
                ModelNotice(element=place, message='"tau" in quotes is an activity; bare tau is silent')
            )
        self.names.add(name)
        label = event_type(self._mapping, "", name, name)
        if label is None:
            return Silent()
        return Activity(label, settings.attributes, place, duration=settings.duration)

    def _full_leaf(self, entry: Mapped, path: str) -> ProcessTree:
        for key, _ in entry.pairs:
            if key.text not in _LEAF_KEYS:
                self._problems.refuse(path, key, f"unknown key {key.text!r}; a leaf has {', '.join(_LEAF_KEYS)}")
            elif key.text == "probability":
                self._problems.refuse(path, key, "a probability belongs to a branch of xor, or, optional")
        own, duration = _leaf_settings(entry, path, self._problems)
        taken = {name for attribute in own for name in attribute.names}
        common = tuple(attribute for attribute in self._defaults.attributes if taken.isdisjoint(attribute.names))
        settings = _Defaults((*common, *own), duration or self._defaults.duration)
        leaf = entry.get("activity")
        assert leaf is not None
        try:
            return self._activity(leaf, path, settings)
        except InvalidWorkflow as error:
            return self._refused(path, entry, error.message)

    def _items(self, entry: Entry, path: str) -> tuple[tuple[Entry, str], ...]:
        """The entries of an operator's list with their paths, counted from 1."""
        if not isinstance(entry, Listing) or not entry.items:
            self._problems.refuse(path, entry, "the operator takes a list of at least one node")
            return ()
        return tuple((item, f"{path}[{number}]") for number, item in enumerate(entry.items, start=1))

    def _nodes(self, entry: Entry, path: str) -> tuple[ProcessTree, ...]:
        return tuple(self.node(item, place) for item, place in self._items(entry, path)) or (Silent(),)

    def _sequence(self, entry: Entry, path: str, place: str) -> ProcessTree:
        return Sequence(self._nodes(entry, path), place)

    def _and(self, entry: Entry, path: str, place: str) -> ProcessTree:
        return Parallel(self._nodes(entry, path), place)

    def _xor(self, entry: Entry, path: str, place: str) -> ProcessTree:
        """An exclusive choice; branches without a probability share the rest equally."""
        branches = [self._branch(*item) for item in self._items(entry, path)]
        given = [branch.probability for branch in branches if branch.probability is not None]
        trees = tuple(branch.tree for branch in branches) or (Silent(),)
        if not given:
            return ExclusiveChoice(trees, (), place)
        left, open_branches = 1.0 - math.fsum(given), len(branches) - len(given)
        if left < -1e-9:
            raise InvalidWorkflow(f"the probabilities of the branches sum to {math.fsum(given):g}, more than 1")
        share = max(0.0, left) / open_branches if open_branches else 0.0
        shares = (share if branch.probability is None else branch.probability for branch in branches)
        return ExclusiveChoice(trees, tuple(shares), place)

    def _or(self, entry: Entry, path: str, place: str) -> ProcessTree:
        """An inclusive choice; branches without a probability have 1/2."""
        branches = [self._branch(*item) for item in self._items(entry, path)]
        trees = tuple(branch.tree for branch in branches) or (Silent(),)
        if all(branch.probability is None for branch in branches):
            return InclusiveChoice(trees, (), place)
        shares = (0.5 if branch.probability is None else branch.probability for branch in branches)
        return InclusiveChoice(trees, tuple(shares), place)

    def _optional(self, entry: Entry, path: str, place: str) -> ProcessTree:
        if isinstance(entry, Listing):
            return self._refused(path, entry, "optional takes one node; for several write optional: {sequence: [..]}")
        branch = self._branch(entry, path)
        shares = () if branch.probability is None else (branch.probability, 1.0 - branch.probability)
        return ExclusiveChoice((branch.tree, Silent()), shares, place)

    def _loop(self, entry: Entry, path: str, place: str) -> ProcessTree:
        if not isinstance(entry, Listing) or len(entry.items) not in (2, 3):
            return self._refused(path, entry, "loop takes [body, redo], with tau where nothing is redone, and settings")
        body, redo = (self.node(item, f"{path}[{number}]") for number, item in enumerate(entry.items[:2], start=1))
        repetitions, again = None, 0.5
        if len(entry.items) == 3:
            repetitions, again = self._rounds(entry.items[2], f"{path}[3]")
        return Loop(body=body, redo=redo, repetitions=repetitions, again=again, origin=place)

    def _rounds(self, entry: Entry, path: str) -> tuple[int | None, float]:
        """The repetition of a loop: the number of times, or the probability of another round."""
        key = entry.keys[0] if isinstance(entry, Mapped) and len(entry.pairs) == 1 else ""
        if not isinstance(entry, Mapped) or key not in ("repetitions", "again"):
            self._problems.refuse(path, entry, "a loop's settings are {repetitions: 3} or {again: 0.5}")
            return None, 0.5
        value = entry.pairs[0][1]
        if key == "again":
            again = read_probability(value, f"{path}.again", self._problems)
            return None, 0.5 if again is None else again
        repetitions = whole_number(value)
        if repetitions is None or not 1 <= repetitions <= MAX_REPETITIONS:
            self._problems.refuse(path, value, f"repetitions is a whole number from 1 to {MAX_REPETITIONS:,}")
            return None, 0.5
        return repetitions, 0.5

    def _branch(self, entry: Entry, path: str) -> _Branch:
        """A node, a leaf with a probability, or ``{branch: node, probability: p}``."""
        probability = entry.get("probability") if isinstance(entry, Mapped) else None
        if not isinstance(entry, Mapped) or not {"activity", "branch"} & set(entry.keys):
            return _Branch(self.node(entry, path), None)
        share = None
        if probability is not None:
            share = read_probability(probability, f"{path}.probability", self._problems)
        if "branch" not in entry.keys:
            pairs = tuple((key, value) for key, value in entry.pairs if key.text != "probability")
            return _Branch(self.node(Mapped(pairs, entry.line), path), share)
        if not {"branch"} <= set(entry.keys) <= {"branch", "probability"}:
            return _Branch(self._refused(path, entry, "a branch has the keys branch and probability"), None)
        node = entry.get("branch")
        assert node is not None
        return _Branch(self.node(node, f"{path}.branch"), share)


def _several_keys(entry: Mapped) -> str:
    found = f"{len(entry.pairs)}: {', '.join(entry.keys)}" if entry.pairs else "none"
    hint = "; wrap it: {branch: .., probability: ..}" if "probability" in entry.keys else ""
    return f"an operator node has exactly one key, this one {found}{hint}"


def _leaf_settings(entry: Mapped, path: str, problems: Problems) -> tuple[tuple[Attribute, ...], Duration | None]:
    prefix = f"{path}." if path else ""
    attributes, duration = entry.get("attributes"), entry.get("duration")
    return (
        () if attributes is None else read_attributes(attributes, f"{prefix}attributes", problems),
        None if duration is None else read_duration(duration, f"{prefix}duration", problems),
    )


def _read_name(entry: Entry | None, problems: Problems) -> str:
    if entry is None:
        return ""
    if not isinstance(entry, Scalar) or not entry.is_text:
        problems.refuse("name", entry, "a name is a text; put quotes around it")
        return ""
    return normalised(entry.text)
