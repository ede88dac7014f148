"""Explains by paths through a drawing why constraints hold, for models that are not made of blocks.

Each explanation names a gateway where the paths to two tasks part, or a task that every path passes. It is true of the
drawing. If paths alone do not show why a constraint holds, the origin names the elements and the method of extraction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

from constraints import Clause, Constraint, Exclusive, Prior, Require
from workflows.nets.graph import Block, FlowGraph, NodeKind
from workflows.nets.net import WorkflowNet
from workflows.relations.extraction import Extraction, Method
from workflows.relations.provenance import Origins


class Drawing:
    """A directed graph of the elements of a model, as it is drawn, to explain constraints by paths.

    It contains all paths that tokens can take, and possibly more.
    """

    def __init__(self) -> None:
        self._words: list[str] = []
        self._labels: dict[str, list[int]] = {}
        self._after: list[list[int]] = []
        self._before: list[list[int]] = []
        self._begins: list[int] = []

    @classmethod
    def of_graph(cls, graph: FlowGraph) -> Drawing:
        """Create the drawing of a flow graph in which all blocks are expanded."""
        drawing = cls()
        drawing._begins = _Opening(drawing).open(graph, None)
        return drawing

    @classmethod
    def of_net(cls, net: WorkflowNet) -> Drawing:
        """Create the drawing of a net without its reset and inhibitor arcs."""
        drawing = cls()
        places = [drawing.add(words) for words in net.places]
        for transition in net.transitions:
            number = drawing.add(transition.element, transition.label)
            for place in set(transition.inputs):
                drawing.link(places[place], number)
            for place in set(transition.outputs):
                drawing.link(number, places[place])
            if not transition.inputs:
                drawing._begins.append(number)
        drawing._begins.extend(places[place] for place in set(net.initial))
        return drawing

    def add(self, words: str, label: str | None = None) -> int:
        """Add a node for an element, described by ``words``, and return its index.

        ``label`` is the event type it emits.
        """
        number = len(self._words)
        self._words.append(words)
        self._after.append([])
        self._before.append([])
        if label is not None:
            self._labels.setdefault(label, []).append(number)
        return number

    def link(self, source: int, target: int) -> None:
        self._after[source].append(target)
        self._before[target].append(source)

    def without_way_out(self) -> list[str]:
        """Return the descriptions of the reachable elements from which no path leads to an end."""
        ends = [node for node, after in enumerate(self._after) if not after]
        saved = self._distances(ends, self._before)
        reached = self._distances(self._begins, self._after)
        return list(dict.fromkeys(self._words[node] for node in reached if node not in saved and self._words[node]))

    def explain(self, constraint: Constraint) -> str:
        """Return why a constraint holds, in words, or an empty text if paths do not show the reason."""
        if not all(name in self._labels for name in constraint.names):
            return ""
        match constraint:
            case Prior(earlier, later):
                return self._order(earlier, later)
            case Exclusive(first, second):
                return self._parting(first, second)
            case Require(trigger, required):
                return self._requirement(trigger, required)
            case Clause(body, head) if not body and head is not None:
                return self._certainty(head)
            case Clause():
                return ""

    def restate(self, constraint: Constraint, reason: str) -> str:
        """Return a constraint in words that name the elements of the model, followed by ``reason``.

        The text is the origin of a constraint that paths do not explain.
        """
        if not all(name in self._labels for name in constraint.names):
            return ""
        listed = [self._emitted_by(name) for name in constraint.names]
        match constraint:
            case Prior(earlier, later) if earlier == later:
                statement = f"no trace has {listed[0]} twice"
            case Prior():
                statement = f"no trace has {listed[0]} after {listed[1]}"
            case Clause(body, head) if not body and head is not None:
                statement = f"every trace has {listed[0]}"
            case Require() | Clause(head=str()):
                statement = f"no trace has {' and '.join(listed[:-1])} without {listed[-1]}"
            case _:
                statement = f"no trace has {' and '.join(listed)} together"
        return f"{statement}: {reason}"

    def _emitted_by(self, name: str) -> str:
        nodes = self._labels[name]
        more = f" (and {len(nodes) - 1} more)" if len(nodes) > 1 else ""
        return f"{self._words[nodes[0]] or name}{more}"

    def _order(self, earlier: str, later: str) -> str:
        if self._leads(later, earlier):
            return ""
        if earlier == later:
            return f"no way leads from {earlier} back to {earlier}" if len(self._labels[earlier]) == 1 else ""
        if self._leads(earlier, later):
            return f"a way leads from {earlier} to {later}, and none back"
        return self._parting(earlier, later)

    def _parting(self, first: str, second: str) -> str:
        """Describe the nearest element at which the paths to two types part.

        Return an empty text without such an element.
        """
        if self._leads(first, second) or self._leads(second, first):
            return ""
        first_distances = self._distances(self._labels[first], self._before)
        second_distances = self._distances(self._labels[second], self._before)
        forks = [
            node
            for node in first_distances
            if node in second_distances and len(self._after[node]) > 1 and self._words[node]
        ]
        nearest = min(forks, key=lambda node: first_distances[node] + second_distances[node], default=None)
        return f"the ways to {first} and {second} part at {self._words[nearest]}" if nearest is not None else ""

    def _requirement(self, trigger: str, required: str) -> str:
        avoided = frozenset(self._labels[required])
        if not self._reached(self._begins, self._after, avoided).intersection(self._labels[trigger]):
            return f"every way to {trigger} passes {required}"
        ahead = self._reached(self._labels[trigger], self._after, avoided)
        return "" if self._ends(ahead) else f"every way on from {trigger} passes {required}"

    def _certainty(self, name: str) -> str:
        reached = self._reached(self._begins, self._after, frozenset(self._labels[name]))
        return "" if self._ends(reached) else f"every way through the model passes {name}"

    def _ends(self, nodes: Iterable[int]) -> bool:
        return any(not self._after[node] for node in nodes)

    def _leads(self, first: str, second: str) -> bool:
        begins = [node for place in self._labels[first] for node in self._after[place]]
        return not self._reached(begins, self._after, frozenset()).isdisjoint(self._labels[second])

    def _reached(self, begins: Iterable[int], edges: list[list[int]], avoided: Collection[int]) -> set[int]:
        return set(self._distances([node for node in begins if node not in avoided], edges, avoided))

    def _distances(
        self, begins: Iterable[int], edges: list[list[int]], avoided: Collection[int] = ()
    ) -> dict[int, int]:
        distances = dict.fromkeys(begins, 0)
        waiting = deque(distances)
        while waiting:
            node = waiting.popleft()
            for other in edges[node]:
                if other not in distances and other not in avoided:
                    distances[other] = distances[node] + 1
                    waiting.append(other)
        return distances


_FOUND_BY = {
    Method.AUTOMATON: "found by all traces together, in the automaton of the model",
    Method.STRUCTURAL: "found by the structure of the whole model",
    Method.COMPOSITIONAL: "found by the blocks of the model",
}


class _Opening:
    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._inside: list[list[int]] = []

    def open(self, graph: FlowGraph, done: int | None) -> list[int]:
        entries: dict[str, int] = {}
        leaves: dict[tuple[str, str], list[int]] = {}
        for node in graph.nodes:
            entries[node.id] = number = self._drawing.add(str(node), node.label)
            for around in self._inside:
                around.append(number)
            leaves[node.id, ""] = [number]
            if node.block is not None:
                leaves.update(self._open_block(node.id, number, node.block))
        for flow in graph.flows:
            for number in leaves.get((flow.source, flow.exit), []):
                self._drawing.link(number, entries[flow.target])
        sources = {flow.source for flow in graph.flows if not flow.exit}
        for node in graph.nodes:
            if done is not None and node.id not in sources:
                for number in leaves[node.id, ""]:
                    self._drawing.link(number, done)
        return [entries[node.id] for node in graph.nodes if node.kind is NodeKind.START]

    def _open_block(self, identity: str, entry: int, block: Block) -> dict[tuple[str, str], list[int]]:
        """Add the graph inside a block to the drawing.

        Return, for each exit, the nodes from which the exit leaves the block. A normal end of the block is the exit
        with an empty id. ``entry`` is the node of the block itself.
        """
        done = self._drawing.add("")
        inside = [entry]
        self._inside.append(inside)
        for start in self.open(block.graph, done):
            self._drawing.link(entry, start)
        self._inside.pop()
        if block.repeat is not None:
            self._drawing.link(done, entry)
            if not block.repeat.least:
                self._drawing.link(entry, done)
        return {(identity, ""): [done], **{(identity, exit_way.id): inside for exit_way in block.exits}}


def lazily(draw: Callable[[], Drawing], extraction: Extraction) -> Origins:
    """Return the origins of an extraction's constraints. ``draw`` is called when the first origin is requested."""
    drawings: list[Drawing] = []

    def explain(constraint: Constraint) -> str:
        if not drawings:
            drawings.append(draw())
        return drawings[0].explain(constraint) or drawings[0].restate(constraint, _FOUND_BY[extraction.method])

    return Origins(extraction, explain)
