"""Reads tree files, which have a name, a tree and simulation settings (see docs/workflow-tree.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import yaml

from streams import NULL_TAG, TEXT_TAG, child_node
from workflows.attributes import Attribute
from workflows.durations import Duration
from workflows.errors import InvalidWorkflow
from workflows.formats.findings import FORMS, Findings
from workflows.formats.mapping import event_type, label_problem, unused_keys
from workflows.formats.nodes import keys_of, place_of, read_node
from workflows.formats.tree_form.settings import read_attributes, read_duration, read_probability, whole_number
from workflows.model import ModelFormat, ModelNotice, ReadOptions, WorkflowModel
from workflows.naming import normalised
from workflows.tree import Activity, ExclusiveChoice, InclusiveChoice, Loop, Parallel, ProcessTree, Sequence, Silent

MAX_NODES = 10_000
MAX_REPETITIONS = 1_000

_KEYS = ("name", "tree", "attributes", "duration")
_LEAF_KEYS = ("activity", "attributes", "duration", "probability")
_SILENT = "tau"


def read_tree(content: bytes, options: ReadOptions) -> WorkflowModel:
    """Read a process tree from YAML or JSON."""
    entry, findings = read_node(content), Findings()
    if options.process is not None:
        raise findings.refusal("", f"a tree file has one process without id; there is no process {options.process!r}")
    if not isinstance(entry, yaml.MappingNode):
        raise findings.refusal(place_of(entry), f"a tree file is a mapping with name and tree; {FORMS}")
    for key, _ in entry.value:
        if key.value not in _KEYS:
            findings.refuse(place_of(key, key.value), f"unknown key; a tree file has {', '.join(_KEYS)}")
    name = _read_name(child_node(entry, "name"), findings)
    reader = _Reader(findings, _leaf_settings(entry, "", findings), options.mapping)
    root = child_node(entry, "tree")
    tree: ProcessTree = Silent()
    if root is None:
        findings.refuse(place_of(entry), "there is no tree; write tree: and the root node")
    else:
        tree = reader.node(root, "tree")
    findings.finish()
    notices = (*reader.notices, *unused_keys(options.mapping, reader.names))
    return WorkflowModel(name=name, format=ModelFormat.TREE, source=tree, notices=notices)


@dataclass(frozen=True, slots=True)
class _Settings:
    """The simulation settings of one activity (a leaf of the tree), or the defaults for all activities."""

    attributes: tuple[Attribute, ...]
    duration: Duration | None


@dataclass(frozen=True, slots=True)
class _Branch:
    tree: ProcessTree
    probability: float | None


class _Reader:
    """Converts the entries of a tree file to nodes of a process tree.

    An entry with a problem becomes a silent node, so that reading finds all problems.
    """

    def __init__(self, findings: Findings, defaults: _Settings, mapping: Mapping[str, str | None]) -> None:
        self.names: set[str] = set()
        self.notices: list[ModelNotice] = []
        self._findings = findings
        self._defaults = defaults
        self._mapping = mapping
        self._count = 0
        self._operators: Mapping[str, Callable[[yaml.Node, str, str], ProcessTree]] = {
            "sequence": lambda entry, path, place: Sequence(self._nodes(entry, path), place),
            "xor": self._xor,
            "and": lambda entry, path, place: Parallel(self._nodes(entry, path), place),
            "or": self._or,
            "loop": self._loop,
            "optional": self._optional,
        }

    def node(self, entry: yaml.Node, path: str) -> ProcessTree:
        self._count += 1
        if self._count > MAX_NODES:
            self._refused(path, entry, f"the tree has more than {MAX_NODES:,} nodes")
            self._findings.finish()
        if isinstance(entry, yaml.ScalarNode):
            return self._bare_leaf(entry, path)
        if isinstance(entry, yaml.SequenceNode):
            return self._refused(path, entry, "a list must be under an operator, such as sequence: [..]")
        if "activity" in keys_of(entry):
            return self._full_leaf(entry, path)
        if len(entry.value) != 1:
            return self._refused(path, entry, _several_keys(entry))
        key, value = entry.value[0]
        if key.value not in self._operators:
            return self._refused(path, key, self._unknown(key.value))
        try:
            return self._operators[key.value](value, f"{path}.{key.value}", place_of(key, f"{path}.{key.value}"))
        except InvalidWorkflow as error:
            return self._refused(f"{path}.{key.value}", key, error.message)

    def _unknown(self, key: str) -> str:
        if key == "branch":
            return "a branch must be in the list of xor or or, or under optional"
        return f"unknown operator {key!r}; there are {', '.join(self._operators)}"

    def _refused(self, path: str, entry: yaml.Node, message: str) -> ProcessTree:
        self._findings.refuse(place_of(entry, path), message)
        return Silent()

    def _bare_leaf(self, entry: yaml.ScalarNode, path: str) -> ProcessTree:
        if entry.tag == NULL_TAG and not entry.value:
            return self._refused(path, entry, f"the node is empty; the silent step is written {_SILENT}")
        if entry.tag == NULL_TAG or (entry.value == _SILENT and not entry.style):
            return Silent()
        return self._activity(entry, path, self._defaults)

    def _activity(self, entry: yaml.Node, path: str, settings: _Settings) -> ProcessTree:
        if entry.tag != TEXT_TAG:
            written = entry.value if isinstance(entry, yaml.ScalarNode) else "Check credit"
            return self._refused(path, entry, f'an activity is a text; put quotes around it: "{written}"')
        problem = label_problem(entry.value)
        if problem is not None:
            return self._refused(path, entry, problem)
        name, place = normalised(entry.value), place_of(entry, path)
        if name == _SILENT:
            self.notices.append(
                ModelNotice(element=place, message='"tau" in quotes is an activity; bare tau is silent')
            )
        self.names.add(name)
        label = event_type(self._mapping, "", name, name)
        if label is None:
            return Silent()
        return Activity(label, settings.attributes, place, duration=settings.duration)

    def _full_leaf(self, entry: yaml.Node, path: str) -> ProcessTree:
        for key, _ in entry.value:
            if key.value not in _LEAF_KEYS:
                self._refused(path, key, f"unknown key {key.value!r}; a leaf has {', '.join(_LEAF_KEYS)}")
            elif key.value == "probability":
                self._refused(path, key, "a probability belongs to a branch of xor, or, optional")
        leaf_settings = _leaf_settings(entry, path, self._findings)
        names = {name for attribute in leaf_settings.attributes for name in attribute.names}
        common = tuple(attribute for attribute in self._defaults.attributes if names.isdisjoint(attribute.names))
        settings = _Settings((*common, *leaf_settings.attributes), leaf_settings.duration or self._defaults.duration)
        leaf = child_node(entry, "activity")
        assert leaf is not None
        try:
            return self._activity(leaf, path, settings)
        except InvalidWorkflow as error:
            return self._refused(path, entry, error.message)

    def _items(self, entry: yaml.Node, path: str) -> tuple[tuple[yaml.Node, str], ...]:
        """Return the entries of an operator's list, each with its path. Paths count entries from 1."""
        if not isinstance(entry, yaml.SequenceNode) or not entry.value:
            self._refused(path, entry, "the operator takes a list of at least one node")
            return ()
        return tuple((item, f"{path}[{number}]") for number, item in enumerate(entry.value, start=1))

    def _nodes(self, entry: yaml.Node, path: str) -> tuple[ProcessTree, ...]:
        return tuple(self.node(item, place) for item, place in self._items(entry, path)) or (Silent(),)

    def _xor(self, entry: yaml.Node, path: str, place: str) -> ProcessTree:
        """Read an exclusive choice. Branches without a probability share equally what the other probabilities leave."""
        branches = [self._branch(*item) for item in self._items(entry, path)]
        probabilities = [branch.probability for branch in branches if branch.probability is not None]
        trees = tuple(branch.tree for branch in branches) or (Silent(),)
        if not probabilities:
            return ExclusiveChoice(trees, (), place)
        remainder, open_branches = 1.0 - math.fsum(probabilities), len(branches) - len(probabilities)
        if remainder < -1e-9:
            raise InvalidWorkflow(f"the probabilities of the branches sum to {math.fsum(probabilities):g}, more than 1")
        share = max(0.0, remainder) / open_branches if open_branches else 0.0
        shares = (share if branch.probability is None else branch.probability for branch in branches)
        return ExclusiveChoice(trees, tuple(shares), place)

    def _or(self, entry: yaml.Node, path: str, place: str) -> ProcessTree:
        """Read an inclusive choice. A branch without a probability gets 1/2."""
        branches = [self._branch(*item) for item in self._items(entry, path)]
        trees = tuple(branch.tree for branch in branches) or (Silent(),)
        if all(branch.probability is None for branch in branches):
            return InclusiveChoice(trees, (), place)
        shares = (0.5 if branch.probability is None else branch.probability for branch in branches)
        return InclusiveChoice(trees, tuple(shares), place)

    def _optional(self, entry: yaml.Node, path: str, place: str) -> ProcessTree:
        if isinstance(entry, yaml.SequenceNode):
            return self._refused(path, entry, "optional takes one node; for several write optional: {sequence: [..]}")
        branch = self._branch(entry, path)
        shares = () if branch.probability is None else (branch.probability, 1.0 - branch.probability)
        return ExclusiveChoice((branch.tree, Silent()), shares, place)

    def _loop(self, entry: yaml.Node, path: str, place: str) -> ProcessTree:
        if not isinstance(entry, yaml.SequenceNode) or len(entry.value) not in (2, 3):
            return self._refused(path, entry, "loop takes [body, redo], with tau where nothing is redone, and settings")
        body, redo = (self.node(item, f"{path}[{number}]") for number, item in enumerate(entry.value[:2], start=1))
        repetitions, again = None, 0.5
        if len(entry.value) == 3:
            repetitions, again = self._rounds(entry.value[2], f"{path}[3]")
        return Loop(body=body, redo=redo, repetitions=repetitions, again=again, origin=place)

    def _rounds(self, entry: yaml.Node, path: str) -> tuple[int | None, float]:
        """Return the settings of a loop: the number of repetitions or None, and the probability of another round."""
        if keys_of(entry) not in (["repetitions"], ["again"]):
            self._refused(path, entry, "a loop's settings are {repetitions: 3} or {again: 0.5}")
            return None, 0.5
        ((key, value),) = entry.value
        if key.value == "again":
            again = read_probability(value, f"{path}.again", self._findings)
            return None, 0.5 if again is None else again
        repetitions = whole_number(value)
        if repetitions is None or not 1 <= repetitions <= MAX_REPETITIONS:
            self._refused(path, value, f"repetitions is a whole number from 1 to {MAX_REPETITIONS:,}")
            return None, 0.5
        return repetitions, 0.5

    def _branch(self, entry: yaml.Node, path: str) -> _Branch:
        """Read a branch: a node, an activity with a probability, or ``{branch: node, probability: p}``."""
        probability = child_node(entry, "probability")
        if not isinstance(entry, yaml.MappingNode) or not {"activity", "branch"} & set(keys_of(entry)):
            return _Branch(self.node(entry, path), None)
        share = None
        if probability is not None:
            share = read_probability(probability, f"{path}.probability", self._findings)
        if "branch" not in keys_of(entry):
            pairs = [(key, value) for key, value in entry.value if key.value != "probability"]
            return _Branch(self.node(yaml.MappingNode(entry.tag, pairs, entry.start_mark), path), share)
        if not {"branch"} <= set(keys_of(entry)) <= {"branch", "probability"}:
            return _Branch(self._refused(path, entry, "a branch has the keys branch and probability"), None)
        node = child_node(entry, "branch")
        assert node is not None
        return _Branch(self.node(node, f"{path}.branch"), share)


def _several_keys(entry: yaml.Node) -> str:
    keys = f"{len(entry.value)}: {', '.join(keys_of(entry))}" if entry.value else "none"
    hint = "; wrap it: {branch: .., probability: ..}" if "probability" in keys_of(entry) else ""
    return f"an operator node has exactly one key, this one {keys}{hint}"


def _leaf_settings(entry: yaml.Node, path: str, findings: Findings) -> _Settings:
    prefix = f"{path}." if path else ""
    attributes, duration = child_node(entry, "attributes"), child_node(entry, "duration")
    return _Settings(
        () if attributes is None else read_attributes(attributes, f"{prefix}attributes", findings),
        None if duration is None else read_duration(duration, f"{prefix}duration", findings),
    )


def _read_name(entry: yaml.Node | None, findings: Findings) -> str:
    if entry is None:
        return ""
    if entry.tag != TEXT_TAG:
        findings.refuse(place_of(entry, "name"), "a name is a text; put quotes around it")
        return ""
    return normalised(entry.value)
