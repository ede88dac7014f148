"""Chooses the process of a file that is read."""

from __future__ import annotations

from collections.abc import Iterable

from workflows.formats.bpmn.document import Document, forms_of
from workflows.formats.bpmn.elements import CALL, MODEL, BpmnElement
from workflows.formats.findings import Findings
from workflows.naming import normalised


def choose_process(document: Document, reference: str | None, findings: Findings) -> BpmnElement:
    """Return the process that a reference names by its id, by the id or name of its pool, or by its own name.

    If the reference is None, the only process with content is chosen. If there are several, it is the process that
    calls all others, otherwise the only process with activities.
    """
    candidates = [process for process in document.processes if process.has_content]
    if reference is None:
        if len(candidates) == 1:
            return candidates[0]
        if not candidates:
            raise findings.refusal("", _without_process(document))
        outermost = _outermost(document, candidates)
        if outermost is not None:
            listed = _list(document, [process for process in candidates if process is not outermost])
            findings.note(outermost.id, f"this process is read; others of the file, {listed}, are called by it")
            return outermost
        active = [process for process in candidates if any(element.is_activity for element in process.descendants())]
        if len(active) == 1:
            listed = _list(document, [process for process in candidates if process is not active[0]])
            findings.note(active[0].id, f"this process is read; the others of the file, {listed}, have no activities")
            return active[0]
        listed = _list(document, active or candidates)
        count = f"{len(active)} with activities" if active else "none with activities"
        raise findings.refusal(
            "", f"the file has {len(candidates)} processes, {count}; choose one by its id (--process): {listed}"
        )
    meant = _find(document, reference)
    if len(meant) == 1 and meant[0] in candidates:
        return meant[0]
    if len(meant) == 1:
        raise findings.refusal(meant[0].id, "this process is empty; give it activities, or choose another")
    what = f"{len(meant)} processes are called" if meant else "there is no process"
    raise findings.refusal("", f"{what} {reference!r}; choose one of {_list(document, candidates) or 'none'}")


def _outermost(document: Document, candidates: list[BpmnElement]) -> BpmnElement | None:
    """Return the process that calls all others, directly or indirectly, and that none of them calls, or None."""
    calls = {id(process): _called(document, process) for process in candidates}
    roots = [
        candidate
        for candidate in candidates
        if not any(candidate in calls[id(by)] for by in candidates if by is not candidate)
    ]
    if len(roots) != 1:
        return None
    reached, waiting = [roots[0]], [roots[0]]
    while waiting:
        for called in calls.get(id(waiting.pop()), []):
            if called not in reached:
                reached.append(called)
                waiting.append(called)
    return roots[0] if all(process in reached for process in candidates) else None


def _called(document: Document, process: BpmnElement) -> list[BpmnElement]:
    targets = (
        document.find(element.get("calledElement", "")) for element in process.descendants() if element.kind == CALL
    )
    return [called for called in targets if called is not None and called.kind == "process"]


def note_origin(document: Document, findings: Findings) -> None:
    """Add a notice if the file is not BPMN 2.0, and one for each import of another file."""
    if document.namespace != MODEL:
        namespace = f"the namespace {document.namespace!r}" if document.namespace else "no namespace"
        findings.note("", f"the file has {namespace}; it is read as BPMN 2.0 ({MODEL})")
    for element in document.root.children("import"):
        location = element.get("location", "") or element.get("namespace", "")
        findings.note("", f"the import of {location!r} (line {element.line}) is not read: only this file is")


def note_collaboration(document: Document, findings: Findings) -> None:
    """Add notices for the parts of a collaboration that are left out."""
    for element in document.root:
        if element.kind in ("choreography", "globalChoreographyTask", "globalConversation"):
            findings.note(element.id, f"{element.kind} is left out: only one process is read")
    for collaboration in document.root.children("collaboration"):
        flows = sum(1 for _ in collaboration.children("messageFlow"))
        if flows:
            findings.note(collaboration.id, f"{flows} message {'flow is' if flows == 1 else 'flows are'} left out")
        talks = sum(1 for _ in collaboration.children("conversation", "subConversation", "callConversation"))
        if talks:
            findings.note(collaboration.id, "conversations are left out: only one process is read")


def _find(document: Document, reference: str) -> list[BpmnElement]:
    """Return the processes that a reference may mean: by id, else by id of a pool, by name of a pool, or by name."""
    name = normalised(reference)
    by_id = _processes_of(pool for pool in document.participants if pool.id == reference)
    by_name = _processes_of(pool for pool in document.participants if name and pool.name == name)
    ways = (
        [process for process in document.processes if process.id == reference],
        [process for process in document.processes if process.id in by_id],
        [process for process in document.processes if process.id in by_name],
        [process for process in document.processes if name and process.name == name],
    )
    return next((way for way in ways if way), [])


def _processes_of(pools: Iterable[BpmnElement]) -> set[str]:
    return {form for pool in pools for form in forms_of(pool.get("processRef", ""))}


def _list(document: Document, processes: list[BpmnElement]) -> str:
    titled = ((process.id, document.title_of(process)) for process in processes[:20])
    listed = ", ".join(f"{identity!r} ({title})" if title else repr(identity) for identity, title in titled)
    return f"{listed}, ..." if len(processes) > 20 else listed


def _without_process(document: Document) -> str:
    kinds = {element.kind for element in document.root}
    if kinds & {"choreography", "globalChoreographyTask"}:
        return "the file has a choreography, which is not read; a process with activities is"
    parts = [part.kind for collaboration in document.root.children("collaboration") for part in collaboration]
    if any(part.endswith("onversation") for part in parts):
        return "the file has conversations, which are not read; a process with activities is"
    if document.processes:
        return "no process of the file has an activity, event or gateway; export the file with its elements"
    return "the file has no process; save it as BPMN 2.0 with the process, not the collaboration alone"
