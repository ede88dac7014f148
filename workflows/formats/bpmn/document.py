"""A BPMN file and its parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from xml.etree.ElementTree import Element

from workflows.formats.bpmn.elements import (
    children,
    descendants,
    id_of,
    is_flow_node,
    is_model_namespace,
    kind_of,
    name_of,
    split_tag,
    without_namespaces,
)
from workflows.formats.findings import Findings

EVENT_DEFINITION = "EventDefinition"


class Document:
    """A BPMN file with an index of its elements.

    Elements of BPMN lose their namespaces in ``root``; ``namespace`` is that of the root as written, empty for none.
    """

    def __init__(self, root: Element, findings: Findings) -> None:
        namespace, local = split_tag(root.tag)
        if local != "definitions" or not is_model_namespace(namespace):
            raise findings.refusal(
                "", f"the root is <{local}>; a BPMN 2.0 file has <definitions> in the namespace of BPMN"
            )
        self.namespace = namespace
        without_namespaces(root)
        self.root = root
        self.processes = tuple(children(root, "process"))
        self.participants = tuple(
            participant
            for collaboration in children(root, "collaboration", "choreography", "globalConversation")
            for participant in children(collaboration, "participant")
        )
        self._flows_from: dict[str, list[Element]] = defaultdict(list)
        self._by_id: dict[str, Element] = {}
        self._repeated: set[str] = set()
        self._pools: dict[str, Element] = {}
        for participant in self.participants:
            for reference in forms_of(participant.get("processRef", "")):
                self._pools.setdefault(reference, participant)
        for element in descendants(root):
            if kind_of(element) == "sequenceFlow":
                self._flows_from[element.get("sourceRef", "").strip()].append(element)
            if id_of(element) and self._by_id.setdefault(id_of(element), element) is not element:
                self._repeated.add(id_of(element))

    def find(self, reference: str) -> Element | None:
        """The element of a reference, which may have a prefix."""
        known = resolve(reference, self._by_id)
        return self._by_id[known] if known is not None else None

    def is_repeated(self, identity: str) -> bool:
        return identity in self._repeated

    def participant_of(self, process: Element) -> Element | None:
        """The first pool of a process."""
        return self._pools.get(id_of(process))

    def flows_from(self, node: str) -> list[Element]:
        """The sequence flows of the whole file that name a node as their source."""
        return self._flows_from.get(node, [])

    def title_of(self, process: Element) -> str:
        """The name of a process, or of its pool; may be empty."""
        participant = self.participant_of(process)
        return name_of(process) or (name_of(participant) if participant is not None else "")

    def definitions_of(self, event: Element) -> tuple[Element, ...]:
        """The definitions of an event, its own and referenced ones."""
        own = [child for child in event if kind_of(child).endswith(EVENT_DEFINITION)]
        for reference in children(event, "eventDefinitionRef"):
            definition = self.find((reference.text or "").strip())
            if definition is not None:
                own.append(definition)
        return tuple(own)


def has_content(process: Element) -> bool:
    """Whether a process or sub-process has any flow node."""
    return any(is_flow_node(kind_of(child)) for child in process)


def resolve(reference: str, known: Container[str]) -> str | None:
    """The id of a reference among the known ids: as written, or without its prefix."""
    return next((form for form in forms_of(reference) if form in known), None)


def forms_of(reference: str) -> tuple[str, ...]:
    """The forms of a reference: as written, and without its prefix; no forms if the reference is empty."""
    written = reference.strip()
    return tuple(dict.fromkeys(form for form in (written, written.rpartition(":")[2]) if form))
