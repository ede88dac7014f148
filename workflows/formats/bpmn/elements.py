"""The names of BPMN: the kinds of its XML elements, and their names in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
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
_WITHOUT_MEANING = frozenset(
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
    """Namespace, which may be empty, and local name."""
    namespace, _, local = tag.rpartition("}")
    return namespace.removeprefix("{"), local


def is_model_namespace(namespace: str) -> bool:
    """Whether a namespace is that of BPMN elements, of any version; tools also omit it."""
    return not namespace or _BPMN.fullmatch(namespace) is not None


def without_namespaces(root: Element) -> None:
    """Replace the names of all BPMN elements of a tree by their local names."""
    names: dict[str, str] = {}
    for element in root.iter():
        if element.tag not in names:
            namespace, local = split_tag(element.tag)
            names[element.tag] = local if is_model_namespace(namespace) else element.tag
        element.tag = names[element.tag]


def kind_of(element: Element) -> str:
    """The local name of a BPMN element; empty for other elements. The tree must be without namespaces."""
    return "" if element.tag.startswith("{") else element.tag


def children(element: Element, *kinds: str) -> Iterator[Element]:
    """The direct children of some kinds."""
    return (child for child in element if kind_of(child) in kinds)


def descendants(element: Element) -> Iterator[Element]:
    """The BPMN elements below an element, in the order of the file, without the contents of extensions."""
    waiting = [child for child in reversed(element) if kind_of(child)]
    while waiting:
        current = waiting.pop()
        yield current
        if kind_of(current) != "extensionElements":
            waiting.extend(child for child in reversed(current) if kind_of(child))


def name_of(element: Element) -> str:
    """The name of an element with white space normalised; may be empty."""
    return normalised(element.get("name", ""))


def id_of(element: Element) -> str:
    """The id of an element; may be empty."""
    return element.get("id", "").strip()


def flag(element: Element, attribute: str, *, default: bool) -> bool:
    """An attribute of type xsd:boolean."""
    written = element.get(attribute, "").strip().lower()
    return {"true": True, "1": True, "false": False, "0": False}.get(written, default)


def text_of(element: Element | None) -> str:
    """The text of an element, without surrounding white space."""
    return (element.text or "").strip() if element is not None else ""


def is_task(kind: str) -> bool:
    """Whether a kind is a task; tools have additional kinds."""
    return kind in TASKS or (_TASK.fullmatch(kind) is not None and kind != "choreographyTask")


def is_sub_process(kind: str) -> bool:
    """Whether a kind has a level of its own."""
    return kind in SUB_PROCESSES


def is_activity(kind: str) -> bool:
    """Whether a kind may have boundary events and loop markers."""
    return is_task(kind) or kind == CALL or kind in SUB_PROCESSES


def is_flow_node(kind: str) -> bool:
    """Whether flows can lead to elements of a kind."""
    return is_activity(kind) or kind in GATEWAYS or kind in EVENTS


def is_without_meaning(kind: str) -> bool:
    """Whether a kind is irrelevant for the order of activities."""
    return kind in _WITHOUT_MEANING


def kind_in_words(element: Element) -> str:
    """The kind in words, such as ``exclusive gateway``; unknown kinds as written."""
    kind = kind_of(element)
    if kind == "subProcess" and flag(element, "triggeredByEvent", default=False):
        return "event sub-process"
    for words in (TASKS, SUB_PROCESSES, GATEWAYS, EVENTS):
        if kind in words:
            return words[kind]
    return "call activity" if kind == CALL else kind or split_tag(element.tag)[1]


def describe(element: Element) -> str:
    """Kind in words, name in quotes, id in brackets, such as ``exclusive gateway 'In stock?' (G_1)``."""
    name = f" {name_of(element)!r}" if name_of(element) else ""
    return f"{kind_in_words(element)}{name} ({id_of(element) or f'without id, line {line_of(element)}'})"


def line_of(element: Element) -> str:
    """The line of the file on which an element begins; a question mark if unknown."""
    return element.get(LINE, "?")
