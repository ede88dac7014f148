"""The elements of BPMN: kinds of XML elements, their names in words, and access to their attributes and children."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from workflows.formats.safe_xml import LINE
from workflows.naming import normalised

TASKS = MappingProxyType(
    {
        "task": "task",
        "userTask": "user task",
        "serviceTask": "service task",
        "sendTask": "send task",
        "receiveTask": "receive task",
        "manualTask": "manual task",
        "scriptTask": "script task",
        "businessRuleTask": "business rule task",
    }
)
MODEL = "http://www.omg.org/spec/BPMN/20100524/MODEL"
CALL = "callActivity"
SUB_PROCESSES = MappingProxyType(
    {"subProcess": "sub-process", "transaction": "transaction", "adHocSubProcess": "ad-hoc sub-process"}
)
GATEWAYS = MappingProxyType(
    {
        "exclusiveGateway": "exclusive gateway",
        "parallelGateway": "parallel gateway",
        "inclusiveGateway": "inclusive gateway",
        "eventBasedGateway": "event-based gateway",
        "complexGateway": "complex gateway",
    }
)
EVENTS = MappingProxyType(
    {
        "startEvent": "start event",
        "endEvent": "end event",
        "intermediateCatchEvent": "intermediate catch event",
        "intermediateThrowEvent": "intermediate throw event",
        "implicitThrowEvent": "throw event",
        "boundaryEvent": "boundary event",
    }
)
INTERMEDIATE = frozenset({"intermediateCatchEvent", "intermediateThrowEvent", "implicitThrowEvent"})
WITHOUT_MEANING = frozenset(
    """
    incoming outgoing sequenceFlow laneSet dataObject dataObjectReference dataStore dataStoreReference dataInput
    dataOutput inputSet outputSet ioSpecification ioBinding property dataInputAssociation dataOutputAssociation
    textAnnotation association group artifact documentation extensionElements auditing monitoring resourceRole
    performer humanPerformer potentialOwner correlationSubscription supports supportedInterfaceRef rendering
    standardLoopCharacteristics multiInstanceLoopCharacteristics completionCondition script conditionExpression
    """.split()
)
_TASK = re.compile(r"[a-z][A-Za-z]*Task")
_BPMN = re.compile(r"https?://([a-z]+\.)?omg\.org/(spec/)?bpmn(?!.*non-normative)(?!.*/di$).*", re.IGNORECASE)


def split_tag(tag: str) -> tuple[str, str]:
    """Split the name of an XML element into its namespace, which may be empty, and its local name."""
    namespace, _, local = tag.rpartition("}")
    return namespace.removeprefix("{"), local


def is_model_namespace(namespace: str) -> bool:
    """Check whether a namespace is BPMN's, of any version.

    An empty namespace is accepted, because some tools omit the namespace.
    """
    return not namespace or _BPMN.fullmatch(namespace) is not None


def without_namespaces(root: BpmnElement) -> None:
    """Replace the name of every BPMN element in a tree by its local name, in place."""
    names: dict[str, str] = {}
    for element in root.iter():
        if element.tag not in names:
            namespace, local = split_tag(element.tag)
            names[element.tag] = local if is_model_namespace(namespace) else element.tag
        element.tag = names[element.tag]


class BpmnElement(Element):
    """An XML element of a BPMN file.

    Its attribute values have no surrounding white space. The value of a missing attribute is empty.
    """

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[BpmnElement]: ...

    @property
    def kind(self) -> str:
        """The local name of a BPMN element, such as ``userTask``. Empty for other elements.

        The caller has called ``without_namespaces``.
        """
        return "" if self.tag.startswith("{") else self.tag

    @property
    def id(self) -> str:
        return self.get("id", "").strip()

    @property
    def name(self) -> str:
        """The name with white space normalised."""
        return normalised(self.get("name", ""))

    @property
    def line(self) -> str:
        """The line of the file on which the element begins, or a question mark if it is unknown."""
        return self.get(LINE, "?")

    @property
    def described(self) -> str:
        """The element in words (kind, name, id), such as ``exclusive gateway 'In stock?' (G_1)``."""
        name = f" {self.name!r}" if self.name else ""
        return f"{self._kind_in_words()}{name} ({self.id or f'without id, line {self.line}'})"

    def _kind_in_words(self) -> str:
        if self.kind == "subProcess" and self.flag("triggeredByEvent", default=False):
            return "event sub-process"
        for words in (TASKS, SUB_PROCESSES, GATEWAYS, EVENTS):
            if self.kind in words:
                return words[self.kind]
        return "call activity" if self.kind == CALL else self.kind or split_tag(self.tag)[1]

    @property
    def is_activity(self) -> bool:
        """Whether the element is an activity, that is, may have boundary events and loop markers.

        Names such as ``fooTask`` count as tasks, because tools define kinds of tasks of their own.
        """
        is_task = self.kind in TASKS or (_TASK.fullmatch(self.kind) is not None and self.kind != "choreographyTask")
        return is_task or self.kind == CALL or self.kind in SUB_PROCESSES

    @property
    def is_flow_node(self) -> bool:
        """Whether sequence flows can connect the element: an activity, a gateway or an event."""
        return self.is_activity or self.kind in GATEWAYS or self.kind in EVENTS

    @property
    def has_content(self) -> bool:
        """Whether a process or sub-process contains any flow node."""
        return any(child.is_flow_node for child in self)

    def children(self, *kinds: str) -> Iterator[BpmnElement]:
        """Yield the direct children of the given kinds."""
        return (child for child in self if child.kind in kinds)

    def child(self, kind: str) -> BpmnElement | None:
        """Return the first direct child of a kind, or None."""
        return next(self.children(kind), None)

    def text_of(self, kind: str) -> str:
        """Return the stripped text of the first child of a kind, or an empty text if no such child exists."""
        child = self.child(kind)
        return (child.text or "").strip() if child is not None else ""

    def descendants(self) -> Iterator[BpmnElement]:
        """Yield all BPMN elements below this element in the order of the file, except the contents of extensions."""
        waiting = [child for child in reversed(list(self)) if child.kind]
        while waiting:
            current = waiting.pop()
            yield current
            if current.kind != "extensionElements":
                waiting.extend(child for child in reversed(list(current)) if child.kind)

    def flag(self, attribute: str, *, default: bool) -> bool:
        """Return an attribute of type xsd:boolean. ``default`` applies to a missing or invalid value."""
        written = self.get(attribute, "").strip().lower()
        return {"true": True, "1": True, "false": False, "0": False}.get(written, default)
