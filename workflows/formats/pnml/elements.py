"""Reads the elements of a PNML net into values."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from workflows.formats.findings import Findings
from workflows.naming import normalised

MAX_TOKENS = 1_000
MAX_TOKENS_IN_ALL = 200_000

_WHOLE = re.compile(r"(?:Default,)?\s*(-?[0-9]+)")
_ARC_KINDS = {
    "": "normal",
    "normal": "normal",
    "inhibitor": "inhibitor",
    "reset": "reset",
    "read": "read",
    "test": "read",
}
_OBJECTS = {
    "place": "place",
    "transition": "transition",
    "referencePlace": "place",
    "referenceTransition": "transition",
}
_COLOURED = {
    "declaration",
    "declarations",
    "hlinitialMarking",
    "hlinscription",
    "condition",
}
_LEFT_OUT = {"name", "toolspecific", "graphics", "text", "finalmarkings", "variables"}


class NetFindings(Findings):
    """The problems and notices of a PNML net. Equal notices are listed once.

    The tokens of all markings and arcs are counted here, because their total is limited.
    """

    def __init__(self) -> None:
        super().__init__()
        self._messages: set[str] = set()
        self._tokens = 0

    def note(self, element: str, message: str) -> None:
        if message not in self._messages:
            self._messages.add(message)
            super().note(element, message)

    def count_tokens(self, count: int) -> None:
        """Add to the number of tokens in the file. Raises ``ModelRefused`` beyond ``MAX_TOKENS_IN_ALL``."""
        self._tokens += count
        if self._tokens > MAX_TOKENS_IN_ALL:
            raise self.refusal("", f"all markings and weights sum to more than {MAX_TOKENS_IN_ALL:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """The position of a node in the drawing: its centre and size."""

    x: float
    y: float
    width: float | None = None
    height: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetNode:
    """A place or a transition as written. Its id is unique in the net.

    Attributes:
        kind: ``place`` or ``transition``.
        tokens: Initial tokens of a place.
        refers_to: The id of the target if the node is a reference; otherwise empty.
        page: Id of the page that contains the node; empty if the net itself contains it.
    """

    id: str
    kind: str
    name: str = ""
    tokens: int = 0
    is_invisible: bool = False
    refers_to: str = ""
    page: str = ""
    spot: Spot | None = None

    @property
    def described(self) -> str:
        """The node in words, such as ``place 'done' (p7)``."""
        name = f" {self.name!r}" if self.name else ""
        return f"{'silent ' if self.is_silent else ''}{self.kind}{name} ({self.id})"

    @property
    def is_silent(self) -> bool:
        """Whether the node is a transition that emits no event."""
        return self.kind == "transition" and (self.is_invisible or not self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """An arc as written. ``kind`` is ``normal``, ``inhibitor``, ``reset`` or ``read``."""

    id: str
    source: str
    target: str
    kind: str = "normal"
    weight: int = 1
    bends: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a PNML net or page contains: its nodes by id, in the order of the file, and its arcs."""

    nodes: dict[str, NetNode]
    arcs: tuple[Arc, ...]


def local(element: Element) -> str:
    """Return the tag of an XML element without its namespace."""
    tag: str = element.tag
    return tag.rpartition("}")[2]


def child(element: Element, name: str) -> Element | None:
    """Return the first child with a name, or None."""
    return next((inner for inner in element if local(inner) == name), None)


def label_text(element: Element, name: str) -> str:
    """Return the normalised text of a label such as ``<name><text>...``, or an empty text if the label is missing."""
    label = child(element, name)
    if label is None:
        return ""
    text = child(label, "text")
    if text is None:
        text = child(label, "value")  # as PIPE and PNML before the standard write it
    return normalised("" if text is None else "".join(text.itertext()))


def read_elements(root: Element, findings: NetFindings) -> Drawn:
    """Read the nodes and arcs of a net or page, including inner pages. Problems are added to the findings."""
    nodes: dict[str, NetNode] = {}
    arcs: list[Arc] = []
    identities: set[str] = set()
    arc_ids: set[str] = set()
    for element, page in _walk(root, findings):
        identity, name = element.get("id", ""), local(element)
        if not identity and name != "arc":
            findings.refuse("", f"a {name} has no id")
            continue
        if name == "arc":
            if identity in arc_ids:
                findings.note(identity, "the id is given twice; the arc is read without it")
                element.set("id", "")
            arc_ids |= {identity} - {""}
            arcs.append(_read_arc(element, findings))
            continue
        if identity in identities:
            findings.refuse(identity, "the id is given twice; give each place and transition its own")
        identities.add(identity)
        if name in _OBJECTS:
            nodes[identity] = _read_node(element, identity, page, findings)
    return Drawn(nodes, tuple(arcs))


def _walk(root: Element, findings: NetFindings) -> Iterator[tuple[Element, str]]:
    """Yield the places, transitions, arcs and pages of a net, each with the id of its page.

    Other elements that affect the meaning of the net are refused, and unknown elements are noted.
    """
    waiting = deque([(root, root.get("id", "") if local(root) == "page" else "")])
    while waiting:
        holder, page = waiting.popleft()
        for element in holder:
            name = local(element)
            if name == "page":
                waiting.append((element, element.get("id", "")))
                yield element, page
            elif name in _OBJECTS or name == "arc":
                yield element, page
            elif name in _COLOURED:
                _refuse_colours(holder.get("id", ""), name, findings)
            elif element.get("source") and element.get("target"):
                findings.refuse(
                    element.get("id", page), f"<{name}> is an unknown kind of arc; write <arc> with its type"
                )
            elif name not in _LEFT_OUT:
                findings.note(page, f"<{name}> is not known and left out")


def _read_node(element: Element, identity: str, page: str, findings: NetFindings) -> NetNode:
    kind = _OBJECTS[local(element)]
    refers_to = element.get("ref", "")
    if local(element).startswith("reference") and not refers_to:
        findings.refuse(identity, f"the reference {kind} has no ref; name the {kind} that it refers to")
    for inner in element:
        _check_inner(inner, identity, findings)
    tokens = 0
    if kind == "place" and child(element, "initialMarking") is not None:
        tokens = read_count(label_text(element, "initialMarking") or "0", identity, "initial marking", findings)
    if element.get("guard"):
        findings.note(identity, "a guard is left out: the transition counts as possible whatever the data")
    return NetNode(
        id=identity,
        kind=kind,
        name=label_text(element, "name"),
        tokens=tokens,
        is_invisible=_is_invisible(element),
        refers_to=refers_to,
        page=page,
        spot=_read_spot(element),
    )


def _check_inner(inner: Element, identity: str, findings: NetFindings) -> None:
    name = local(inner)
    if name in _COLOURED or (name == "type" and child(inner, "structure") is not None):
        _refuse_colours(identity, name, findings)
    elif name not in _LEFT_OUT and name != "initialMarking":
        findings.note(identity, f"<{name}> is not known and left out")


def _refuse_colours(identity: str, name: str, findings: NetFindings) -> None:
    findings.refuse(identity, f"<{name}> belongs to a high-level net; only place/transition nets are read")


def _is_invisible(element: Element) -> bool:
    """Return whether a transition has the mark for silent transitions that ProM and PM4Py write."""
    is_marked = any(inner.get("activity") == "$invisible$" for inner in element if local(inner) == "toolspecific")
    return is_marked or element.get("invisible") == "true"


def _read_arc(element: Element, findings: NetFindings) -> Arc:
    source, target = element.get("source", ""), element.get("target", "")
    identity = element.get("id") or f"arc from {source or '?'} to {target or '?'}"
    if not source or not target:
        findings.refuse(identity, "an arc needs a source and a target")
    for inner in element:
        if local(inner) in _COLOURED:
            _refuse_colours(identity, local(inner), findings)
    written = _arc_type(element)
    kind = _ARC_KINDS.get(written.removesuffix("arc").strip())
    if kind is None:
        findings.refuse(identity, f"unknown type of arc {written!r}; there are normal, inhibitor, reset and read arcs")
    weight = read_count(label_text(element, "inscription") or "1", identity, "weight", findings)
    if weight == 0:
        findings.refuse(identity, "an arc of weight 0 means nothing; leave it out, or give it a weight of at least 1")
    if kind == "inhibitor" and weight > 1:
        findings.refuse(identity, f"an inhibitor arc of weight {weight}; only those of weight 1 are read")
    return Arc(
        id=identity, source=source, target=target, kind=kind or "normal", weight=weight, bends=_read_bends(element)
    )


def _arc_type(element: Element) -> str:
    """Return the type of an arc in lower case, from an inner element (ProM, PIPE) or from the attribute (others)."""
    for name in ("arctype", "type"):
        inner = child(element, name)
        if inner is not None:
            return (inner.get("value") or label_text(element, name)).strip().lower()
    return element.get("type", "").strip().lower()


def read_count(text: str, identity: str, what: str, findings: NetFindings) -> int:
    """Return a whole number from 0 to ``MAX_TOKENS``. An invalid number is refused and read as 1."""
    written = _WHOLE.fullmatch(text)
    if written is None:
        findings.refuse(identity, f"the {what} {text[:30]!r} is not a whole number")
        return 1
    count = int(written.group(1)[:20])  # a number of 20 digits is too large anyway
    if not 0 <= count <= MAX_TOKENS:
        findings.refuse(identity, f"the {what} is {count}; it must lie between 0 and {MAX_TOKENS:,}")
        return 1
    findings.count_tokens(count)
    return count


def _read_spot(element: Element) -> Spot | None:
    graphics = child(element, "graphics")
    position = None if graphics is None else child(graphics, "position")
    centre = None if position is None else _pair(position)
    if graphics is None or centre is None:
        return None
    dimension = child(graphics, "dimension")
    size = None if dimension is None else _pair(dimension)
    if size is None or min(size) <= 0.0:
        return Spot(x=centre[0], y=centre[1])
    return Spot(x=centre[0], y=centre[1], width=size[0], height=size[1])


def _read_bends(element: Element) -> tuple[tuple[float, float], ...]:
    graphics = child(element, "graphics")
    if graphics is None:
        return ()
    pairs = (_pair(inner) for inner in graphics if local(inner) == "position")
    return tuple(pair for pair in pairs if pair is not None)


def _pair(element: Element) -> tuple[float, float] | None:
    try:
        x, y = float(element.get("x", "")), float(element.get("y", ""))
    except ValueError:
        return None
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None
