"""A BPMN file with an index of its elements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container

from workflows.formats.bpmn.elements import BpmnElement, is_model_namespace, split_tag, without_namespaces
from workflows.formats.findings import Findings
from workflows.formats.safe_xml import parse_xml

EVENT_DEFINITION = "EventDefinition"


class Document:
    """A BPMN file with an index of its elements.

    ``root`` is the tree of the file, in which the names of BPMN elements have no namespace. ``namespace`` is the
    namespace of the root in the file, or empty.
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
        """Return the element whose id a reference names, with or without a namespace prefix. None if there is none."""
        identity = resolve(reference, self._by_id)
        return self._by_id[identity] if identity is not None else None

    def is_repeated(self, identity: str) -> bool:
        return identity in self._repeated

    def participant_of(self, process: BpmnElement) -> BpmnElement | None:
        """Return the first pool of a process, or None if the process has no pool."""
        return self._pools.get(process.id)

    def flows_from(self, node: str) -> list[BpmnElement]:
        """Return all sequence flows of the file with the given source, in whichever process they are written."""
        return self._flows_from.get(node, [])

    def title_of(self, process: BpmnElement) -> str:
        """Return the name of a process, otherwise the name of its pool, otherwise an empty text."""
        participant = self.participant_of(process)
        return process.name or (participant.name if participant is not None else "")

    def definitions_of(self, event: BpmnElement) -> tuple[BpmnElement, ...]:
        """Return the event definitions (such as a timer or message) of an event, inner ones before referenced ones."""
        definitions = [child for child in event if child.kind.endswith(EVENT_DEFINITION)]
        for reference in event.children("eventDefinitionRef"):
            definition = self.find((reference.text or "").strip())
            if definition is not None:
                definitions.append(definition)
        return tuple(definitions)


def resolve(reference: str, identities: Container[str]) -> str | None:
    """Return the id in ``identities`` that a reference means, with or without its namespace prefix.

    None if none fits.
    """
    return next((form for form in forms_of(reference) if form in identities), None)


def forms_of(reference: str) -> tuple[str, ...]:
    """Return the ids that a reference may mean: as written, and without its namespace prefix.

    An empty reference means none.
    """
    written = reference.strip()
    return tuple(dict.fromkeys(form for form in (written, written.rpartition(":")[2]) if form))
