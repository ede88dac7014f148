from dataclasses import replace

import pytest

from service.errors import RecordFormatError, RegistryContended, UnknownWorkflow
from service.stores import RegisteredWorkflow, WorkflowStore, WorkflowSummary
from service.stores.record_books import RecordBook

pytestmark = pytest.mark.redis

SUMMARY = WorkflowSummary(
    title="Order",
    format="tree",
    method="compositional",
    events=("A", "B"),
    end=("B",),
    counts={"prior": 2},
    states=3,
    without_automaton="",
    warnings=("something",),
    notices=(("t1", "left out"),),
)
MODEL, FINDINGS = b"\x00tree", {"cover": ["prior(A, B)"], "automaton": None}
WANTED = RegisteredWorkflow(
    name="order",
    version=0,
    is_active=True,
    size_bytes=5,
    registered_us=0,
    media_type="application/yaml",
    process=None,
    mapping={"a": "A", "b": None},
    summary=SUMMARY,
)


def put(store, now_us, *, model=MODEL, findings=FINDINGS, **change):
    return store.put(replace(WANTED, registered_us=now_us, size_bytes=len(model), **change), model, findings)


@pytest.fixture
def store(stores):
    return stores.workflows


def test_a_workflow_is_kept_with_its_model_and_findings(store):
    record, is_new = put(store, 7)
    assert (is_new, record.version, record.registered_us, record.size_bytes) == (True, 1, 7, 5)
    assert (record.summary, record.mapping, record.process) == (SUMMARY, {"a": "A", "b": None}, None)
    assert store.get("order") == record
    assert store.all() == [record]
    assert store.model(record) == MODEL
    assert store.findings(record) == FINDINGS


@pytest.mark.parametrize(
    "change",
    [
        {"model": b"other"},
        {"mapping": {}},
        {"process": "p"},
        {"findings": {"cover": [], "automaton": None}},
        {"summary": replace(SUMMARY, states=None, without_automaton="too large")},
    ],
)
def test_whatever_is_different_is_the_next_version_and_the_same_is_none(store, change):
    first, _ = put(store, 1)
    assert put(store, 2) == (first, False)
    second, is_new = put(store, 3, **change)
    assert (second.version, second.registered_us, is_new) == (2, 3, True)
    assert store.versions("order") == [first, second]
    assert (store.get("order"), store.version("order", 1)) == (second, first)
    assert store.model(first) == MODEL
    assert store.findings(first) == FINDINGS


def test_a_deleted_workflow_keeps_its_versions_and_goes_on_counting(store):
    first, _ = put(store, 1)
    store.remove("order")
    assert store.all() == []
    for call in (store.get, store.versions, store.remove):
        with pytest.raises(UnknownWorkflow, match="'order'"):
            call("order")
    assert store.followed("order", 1).summary == SUMMARY
    again, is_new = put(store, 2)
    assert (again.version, is_new, first.version) == (2, True, 1)


def test_an_unknown_version_is_named(store):
    put(store, 1)
    with pytest.raises(UnknownWorkflow, match=r"no version 2; it has 1 to 1"):
        store.version("order", 2)


@pytest.mark.parametrize("body", [b'{"format": 2}', b"[]", b"not json"])
def test_records_of_unknown_form_are_refused(store, client, body):
    client.hset(WorkflowStore.key, "order", body)
    with pytest.raises(RecordFormatError, match="order"):
        store.get("order")


class Interrupted(RecordBook):
    """A book in which another writer intervenes between reading and writing, ``rounds`` times."""

    rounds = 1

    def get(self, key, field):
        found = super().get(key, field)
        if self.rounds:
            self.rounds -= 1
            model = f"other {self.rounds}".encode()
            put(WorkflowStore(self.client), 1, model=model)
        return found


def test_a_change_from_a_stale_record_is_computed_again(client, store):
    record, is_new = put(WorkflowStore(Interrupted(client)), 2)
    assert (record.version, is_new) == (2, True)
    WorkflowStore(Interrupted(client)).remove("order")
    assert store.all() == []
    assert len(client.hkeys(WorkflowStore.versions_key)) == 3


def test_endless_contention_is_told(client):
    book = Interrupted(client)
    book.rounds = 1000
    interrupted = WorkflowStore(book)
    with pytest.raises(RegistryContended, match="order"):
        put(interrupted, 2)
    with pytest.raises(RegistryContended, match="order"):
        interrupted.remove("order")


def test_a_script_whose_answer_was_lost_has_written_once(client, store):
    deaf = RecordBook(client)
    commit = deaf._commit
    deaf._commit = lambda **given: (commit(**given), commit(**given))[1]
    record, is_new = put(WorkflowStore(deaf), 2)
    assert (record.version, is_new) == (1, True)
    assert store.versions("order") == [record]
    WorkflowStore(deaf).remove("order")
    assert store.all() == []
