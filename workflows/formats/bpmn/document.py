"""A BPMN file and its parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container

from workflows.formats.bpmn.elements import BpmnElement, is_model_namespace, split_tag, without_namespaces
from workflows.formats.findings import Findings
from workflows.formats.safe_xml import parse_xml

EVENT_DEFINITION = "EventDefinition"


class Document:
    """A BPMN file with an index of its elements.

    Elements of BPMN lose their namespaces in ``root``; ``namespace`` is the root's namespace as written, or empty.
    """

    def __init__(self, content: bytes, findings: Findings) -> None:
        root = parse_xml(content, make=BpmnElement)
        assert isinstance(root, BpmnElement)
        namespace, local = split_tag(root.tag)
        if local != "definitions" or not is_model_namespace(namespace):
            raise findings.refusal(
                "", f"the root is <{local}>; a BPMN 2.0 file has <definitions> in the namespace of BPMN"
            )
        self.namespace = namespace
        without_namespaces(root)
        self.root = root
        self.processes = tuple(root.children("process"))
        self.participants = tuple(
            participant
            for collaboration in root.children("collaboration", "choreography", "globalConversation")
            for participant in collaboration.children("participant")
        )
        self._flows_from: dict[str, list[BpmnElement]] = defaultdict(list)
        self._by_id: dict[str, BpmnElement] = {}
        self._repeated: set[str] = set()
        self._pools: dict[str, BpmnElement] = {}
        for participant in self.participants:
            for reference in forms_of(participant.get("processRef", "")):
                self._pools.setdefault(reference, participant)
        for element in root.descendants():
            if element.kind == "sequenceFlow":
                self._flows_from[element.get("sourceRef", "").strip()].append(element)
            if element.id and self._by_id.setdefault(element.id, element) is not element:
                self._repeated.add(element.id)

    def find(self, reference: str) -> BpmnElement | None:
        """The element of a reference, which may have a prefix."""
        identity = resolve(reference, self._by_id)
        return self._by_id[identity] if identity is not None else None

    def is_repeated(self, identity: str) -> bool:
        return identity in self._repeated

    def participant_of(self, process: BpmnElement) -> BpmnElement | None:
        """The first pool of a process."""
        return self._pools.get(process.id)

    def flows_from(self, node: str) -> list[BpmnElement]:
        """The sequence flows of the whole file that name a node as their source."""
        return self._flows_from.get(node, [])

    def title_of(self, process: BpmnElement) -> str:
        """The name of a process, or of its pool; may be empty."""
        participant = self.participant_of(process)
        return process.name or (participant.name if participant is not None else "")

    def definitions_of(self, event: BpmnElement) -> tuple[BpmnElement, ...]:
        """The definitions of an event: in the event itself, then by reference."""
        definitions = [child for child in event if child.kind.endswith(EVENT_DEFINITION)]
        for reference in event.children("eventDefinitionRef"):
            definition = self.find((reference.text or "").strip())
            if definition is not None:
                definitions.append(definition)
        return tuple(definitions)


def resolve(reference: str, identities: Container[str]) -> str | None:
    """The id of a reference among the known ids: as written, or without its prefix."""
    return next((form for form in forms_of(reference) if form in identities), None)


def forms_of(reference: str) -> tuple[str, ...]:
    """The forms of a reference: as written, and without its prefix; no forms if the reference is empty."""
    written = reference.strip()
    return tuple(dict.fromkeys(form for form in (written, written.rpartition(":")[2]) if form))
