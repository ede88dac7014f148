"""Reads PNML files: chooses a net, reads its markings, and maps its transitions to events."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from workflows.diagram import Diagram, Edge, Point, Shape
from workflows.errors import ModelRefused
from workflows.formats.mapping import event_type, label_problem, unused_keys
from workflows.formats.pnml.elements import (
    Arc,
    Drawn,
    NetFindings,
    NetNode,
    child,
    label_text,
    local,
    read_count,
    read_elements,
)
from workflows.formats.safe_xml import parse_xml
from workflows.model import ModelFormat, ReadOptions, WorkflowModel
from workflows.nets.net import Places, Transition, WorkflowNet

_SIZE = 30.0
_SILENT_WIDTH = 10.0

_HIGH_LEVEL = ("highlevel", "symmetricnet", "pt-hlpng", "hlpn", "coloured", "colored")
_LIKE_SILENT = {"tau", "τ", "silent", "invisible", "skip"}


def read_pnml(content: bytes, options: ReadOptions) -> WorkflowModel:
    """Read the place/transition net of a PNML file. ``options.process`` is the id of a net, or of a page of a net."""
    net, part = _chosen(parse_xml(content), options.process)
    findings = NetFindings()
    _check_type(net, findings)
    findings.finish()
    drawn = read_elements(part, findings)
    links = _resolve(drawn, findings)
    wired = _wire(drawn, links, findings)
    findings.finish()
    initial = _initial_marking(drawn, wired, findings)
    finals = _final_markings(net, part, drawn, wired, findings)
    findings.finish()
    labels = _labels(drawn, options.mapping, findings)
    findings.finish()
    transitions = tuple(
        Transition(
            inputs=_as_places(wired.inputs[node.id]),
            outputs=_as_places(wired.outputs[node.id]),
            label=labels[node.id],
            resets=tuple(sorted(wired.resets[node.id])),
            waits=tuple(sorted(wired.waits[node.id])),
            element=node.described,
        )
        for node in drawn.nodes.values()
        if node.kind == "transition" and not node.refers_to
    )
    names = {name for node in drawn.nodes.values() for name in (node.id, node.name) if node.kind == "transition"}
    return WorkflowModel(
        name=label_text(part, "name") or label_text(net, "name") or part.get("id", ""),
        format=ModelFormat.PNML,
        source=WorkflowNet(
            places=tuple(drawn.nodes[place].described for place in wired.places),
            transitions=transitions,
            initial=initial,
            finals=finals,
        ),
        notices=(
            *findings.notices,
            *unused_keys(options.mapping, names),
        ),
        diagram=_draw_net(drawn, labels),
    )


def _chosen(root: Element, identity: str | None) -> tuple[Element, Element]:
    """Return the net that ``identity`` names, and the part of it to read: the whole net or one page."""
    if local(root) != "pnml":
        raise ModelRefused([("", f"the root is <{local(root)}>; a PNML file begins with <pnml>")])
    nets = [net for net in root if local(net) == "net"]
    if not nets:
        raise ModelRefused([("", "the file has no <net>")])
    if identity is not None:
        matches = [(net, part) for net in nets for part in _parts(net) if part.get("id") == identity]
        if len(matches) == 1:
            return matches[0]
        count = "several nets or pages have" if matches else "no net and no page has"
        raise ModelRefused([("", f"{count} the id {identity!r}; the file has {_listed(nets)}")])
    if len(nets) > 1:
        raise ModelRefused([("", f"the file has {len(nets)} nets; choose one by its id: {_listed(nets)}")])
    return nets[0], nets[0]


def _parts(net: Element) -> list[Element]:
    return [net, *(element for element in net.iter() if local(element) == "page")]


def _listed(nets: list[Element]) -> str:
    words = []
    for part in (part for net in nets for part in _parts(net)):
        name = label_text(part, "name")
        words.append(f"{local(part)} {part.get('id', '')!r}" + (f" ({name})" if name else ""))
    return ", ".join(words[:50]) + (", ..." if len(words) > 50 else "")


def _check_type(net: Element, findings: NetFindings) -> None:
    written = net.get("type", "")
    if any(word in written.lower() for word in _HIGH_LEVEL):
        findings.refuse(
            net.get("id", ""), f"the net is of the type {written}, high-level; only place/transition nets are read"
        )


def _resolve(drawn: Drawn, findings: NetFindings) -> dict[str, str]:
    """Return for each id of a node the id of the node that it means: itself or, for a reference, the final target.

    The target is empty if the reference is broken.
    """
    links: dict[str, str] = {}
    for node in drawn.nodes.values():
        way: set[str] = set()
        real = node
        while real.refers_to and real.id not in links:
            links[real.id] = ""  # empty until resolved, so that a cycle ends here
            way.add(real.id)
            after = drawn.nodes.get(real.refers_to)
            problem = _misreference(real, after, way)
            if after is None or problem:
                findings.refuse(real.id, f"the reference {real.kind} refers to {real.refers_to!r}, {problem}")
                break
            real = after
        else:
            links.setdefault(real.id, real.id)
        for identity in way:
            links[identity] = links.get(real.id, "")
    return links


def _misreference(node: NetNode, after: NetNode | None, way: set[str]) -> str:
    if after is None:
        return "which does not exist"
    if after.kind != node.kind:
        return f"which is a {after.kind}"
    return "which leads back to it" if after.id in way else ""


@dataclass(slots=True)
class _Wired:
    """The places of a net, numbered by ``index``, and the arcs of each transition.

    For each transition, ``inputs`` and ``outputs`` map a place to the weight of its arc.
    """

    places: list[str]
    index: dict[str, int]
    links: dict[str, str]
    inputs: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    outputs: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    resets: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    waits: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))


def _wire(drawn: Drawn, links: dict[str, str], findings: NetFindings) -> _Wired:
    places = [node.id for node in drawn.nodes.values() if node.kind == "place" and not node.refers_to]
    wired = _Wired(places, {place: number for number, place in enumerate(places)}, links)
    for arc in drawn.arcs:
        source, target = (_end(arc, end, drawn, findings) for end in (arc.source, arc.target))
        if source is None or target is None or not links[source.id] or not links[target.id]:
            continue  # reported before
        if source.kind == target.kind:
            findings.refuse(
                arc.id, f"an arc from {source.described} to {target.described}: it must join a place and a transition"
            )
        elif arc.kind == "normal" or source.kind == "place":
            _add_arc(wired, arc, source, target)
        else:
            findings.refuse(arc.id, f"a {arc.kind} arc leads from a place to a transition, not from {source.described}")
    return wired


def _end(arc: Arc, identity: str, drawn: Drawn, findings: NetFindings) -> NetNode | None:
    node = drawn.nodes.get(identity)
    if node is None and identity:
        findings.refuse(arc.id, f"the arc joins {identity!r}, which is not in the net")
    return node


def _add_arc(wired: _Wired, arc: Arc, source: NetNode, target: NetNode) -> None:
    first, second = wired.links[source.id], wired.links[target.id]
    if source.kind == "transition":
        wired.outputs[first][wired.index[second]] += arc.weight
    elif arc.kind == "inhibitor":
        wired.waits[second].add(wired.index[first])
    elif arc.kind == "reset":
        wired.resets[second].add(wired.index[first])
    else:
        wired.inputs[second][wired.index[first]] += arc.weight
        if arc.kind == "read":
            wired.outputs[second][wired.index[first]] += arc.weight


def _as_places(counts: Counter[int]) -> Places:
    return tuple(sorted(counts.elements()))


def _initial_marking(drawn: Drawn, wired: _Wired, findings: NetFindings) -> Places:
    """Return the initial marking of the file. If it has none, put one token into the only source place.

    A source place has outgoing arcs but no incoming ones.
    """
    counts = Counter({wired.index[place]: drawn.nodes[place].tokens for place in wired.places})
    if counts.total():
        return _as_places(counts)
    filled = {place for row in wired.outputs.values() for place in row}
    sources = sorted({place for row in wired.inputs.values() for place in row} - filled)
    if len(sources) != 1:
        names = ", ".join(drawn.nodes[wired.places[place]].described for place in sources[:10]) or "none"
        findings.refuse(
            "", f"there is no initial marking, and not exactly one source place: {names}; give an initial marking"
        )
        return ()
    place = wired.places[sources[0]]
    findings.note(place, "there is no initial marking: a trace begins with one token in the only source place")
    return (sources[0],)


def _final_markings(
    net: Element, part: Element, drawn: Drawn, wired: _Wired, findings: NetFindings
) -> tuple[Places, ...]:
    """Return the final markings of the chosen part, or those of the whole net if the part has none.

    If the file has no final markings, each sink place gets one, with one token in this place. A sink place has incoming
    arcs but no outgoing ones.
    """
    markings = [_read_marking(marking, drawn, wired, findings) for marking in _given_markings(part)]
    if not markings and part is not net:
        names = {element.get("id", "") for element in net.iter() if local(element) in ("place", "referencePlace")}
        outside = names - drawn.nodes.keys()
        whole = (_read_marking(marking, drawn, wired, findings, outside) for marking in _given_markings(net))
        markings = [marking for marking in whole if marking]
    if markings:
        return tuple(dict.fromkeys(markings))
    source_places = {place for row in wired.inputs.values() for place in row}
    source_places |= {place for row in wired.resets.values() for place in row}
    sinks = sorted({place for row in wired.outputs.values() for place in row} - source_places)
    if not sinks:
        findings.refuse(
            "", "there are no final markings and no sink place; give <finalmarkings>, or a place that nothing leaves"
        )
    return tuple((place,) for place in sinks)


def _given_markings(part: Element) -> list[Element]:
    return [
        marking
        for holder in part.iter()
        if local(holder) == "finalmarkings"
        for marking in holder
        if local(marking) == "marking"
    ]


def _read_marking(
    marking: Element, drawn: Drawn, wired: _Wired, findings: NetFindings, outside: Set[str] = frozenset()
) -> Places:
    """Return the tokens of a final marking, except those of ``outside``: the places that are not on the chosen page."""
    counts: Counter[int] = Counter()
    for entry in (entry for entry in marking if local(entry) == "place"):
        identity = entry.get("idref", "")
        node = drawn.nodes.get(identity)
        if identity not in outside and (node is None or node.kind != "place"):
            findings.refuse(identity, "a final marking names it, but there is no such place")
            continue
        text = child(entry, "text")
        written = "" if text is None or text.text is None else text.text.strip()
        count = read_count(written or "0", identity, "final marking", findings)
        if identity not in outside:
            counts[wired.index[wired.links[identity]]] += count
        elif count:
            findings.note(identity, "a final marking names places outside the chosen page; they are left out")
    return _as_places(counts)


def _labels(drawn: Drawn, mapping: Mapping[str, str | None], findings: NetFindings) -> dict[str, str | None]:
    labels: dict[str, str | None] = {}
    for node in drawn.nodes.values():
        if node.kind != "transition" or node.refers_to:
            continue
        if node.name.lower() in _LIKE_SILENT and not node.is_silent and not {node.id, node.name} & set(mapping):
            findings.note(node.id, f"the name {node.name!r} is an event type; a silent transition has no name")
        label = event_type(mapping, node.id, node.name, None if node.is_silent else node.name)
        if label is not None and (problem := label_problem(label)):
            findings.refuse(node.id, problem)
        labels[node.id] = label
    return labels


def _draw_net(drawn: Drawn, labels: Mapping[str, str | None]) -> Diagram | None:
    """Return the drawing of a net. None unless all nodes are on one page, each at its own position.

    ``labels`` are the event types of transitions by id.
    """
    nodes = drawn.nodes.values()
    spots = {(node.spot.x, node.spot.y) for node in nodes if node.spot is not None}
    if not nodes or len(spots) < len(nodes) or len({node.page for node in nodes}) > 1:
        return None
    shapes = {node.id: _shape(node, labels.get(node.id)) for node in nodes}
    edges = tuple(_edge(arc, shapes[arc.source], shapes[arc.target]) for arc in drawn.arcs)
    return Diagram(shapes=tuple(shapes.values()), edges=edges)


def _shape(node: NetNode, event: str | None) -> Shape:
    assert node.spot is not None
    is_silent = node.kind == "transition" and event is None
    width = node.spot.width or (_SILENT_WIDTH if is_silent else _SIZE)
    height = node.spot.height or _SIZE
    return Shape(
        element=node.id,
        kind="silent" if is_silent else node.kind,
        label=node.name,
        x=node.spot.x - width / 2,
        y=node.spot.y - height / 2,
        width=width,
        height=height,
        event=event,
    )


def _edge(arc: Arc, source: Shape, target: Shape) -> Edge:
    first, last = source.centre, target.centre
    inner = arc.bends
    points = (
        _border(source, inner[0] if inner else last),
        *inner,
        _border(target, inner[-1] if inner else first),
    )
    label = str(arc.weight) if arc.weight > 1 else "" if arc.kind == "normal" else arc.kind
    return Edge(element=arc.id, points=points, label=label, is_dashed=arc.kind != "normal")


def _border(shape: Shape, towards: Point) -> Point:
    """Return the point where the line from the centre of a shape to another point crosses the border of the shape."""
    x, y = shape.centre
    dx, dy = towards[0] - x, towards[1] - y
    if not dx and not dy:
        return x, y
    if shape.kind == "place":
        share = min(shape.width, shape.height) / 2 / math.hypot(dx, dy)
    else:
        share = min(size / 2 / abs(step) for size, step in ((shape.width, dx), (shape.height, dy)) if step)
    share = min(1.0, share)
    return x + dx * share, y + dy * share
