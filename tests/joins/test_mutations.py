"""The mistakes of section 6.5 of the specification, made on purpose: random workloads show each of them."""

import pytest

from joins import ItemColumns, Window, WindowJoin, windowed
from joins.kernels import clusters, outer, unclosed
from joins.kernels import windowed as windowed_kernel
from streams.kernels import slots
from tests.joins.mutated import interpreted, workload
from tests.references.joins import ReferenceJoin
from tests.references.outer import ReferenceOuterJoin

WORKLOADS = 60
KERNELS = (slots, clusters, unclosed, outer, windowed_kernel)
EARLY = 'if lent.keyed[cluster]["filled"] - (lent.lists[cluster, number]["live"] > 0) != lent.lists.shape[1] - 1:'
ON_THE_FLY = "item, why)\n        hold_place("
DROPPED = "np.uint8(BY_CLOSING))\n    hold_place("
WINDOW_MUTATIONS = {
    "probing before the event is inserted": (
        "time",
        [(EARLY, 'if lent.keyed[cluster]["filled"] != lent.lists.shape[1]:')],
    ),
    "no place for an event that need not be stored": (
        "events",
        [(ON_THE_FLY, ON_THE_FLY.replace("hold_place", "0 and hold_place"))],
    ),
    "no place for an event of a closed key": (
        "events",
        [(DROPPED, DROPPED.replace("hold_place", "0 and hold_place"))],
    ),
}
OUTER_MUTATIONS = {
    "a combination that is part of a larger one": ("origin, place) < since:", "origin, place) < -9:"),
    "an event that leaves is not seen": (
        "    lent.seen[cluster, number] = lent.counters[SEQUENCE]\n    if is_over",
        "    if is_over",
    ),
    "what finished inputs lack is reported twice": ("if is_open and absent", "if absent"),
    "a required input is absent": ("if is_open and absent & rules.required[0] == _NONE:", "if is_open:"),
    "an input that may be absent ends a key": ("closed & rules.required[0] & ~live", "closed & ~live"),
}


SEEN = 3  # workloads that show a mistake; the others need not be run


def wrong_windowed(monkeypatch, module, kind):
    """In how many random workloads a windowed join differs from its meaning, counted up to those that are enough."""
    monkeypatch.setattr(windowed, "join_batch", module.join_batch)
    monkeypatch.setattr(windowed, "fill_slots", module.fill_slots)
    wrong = 0
    for seed in range(WORKLOADS):
        inputs = 2 + seed % 2
        declared = [Window(kind, 3 + seed % 5)] * inputs
        join, meaning = WindowJoin(declared), ReferenceJoin(declared)
        found = join.push(ItemColumns.of(workload(seed, inputs)))
        for item in workload(seed, inputs):
            meaning.push(*item)
        wrong += sorted(map(tuple, found.members.tolist())) != sorted(members for _, members in meaning.results)
        if wrong == SEEN:
            break
    return wrong


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in WINDOW_MUTATIONS.values()}))
def test_without_a_mistake_a_windowed_join_is_right(kind, monkeypatch):
    assert wrong_windowed(monkeypatch, interpreted(KERNELS), kind) == 0


@pytest.mark.parametrize("name", WINDOW_MUTATIONS)
def test_a_mistake_in_a_windowed_join_is_seen(name, monkeypatch):
    kind, changes = WINDOW_MUTATIONS[name]
    assert wrong_windowed(monkeypatch, interpreted(KERNELS, changes), kind) == SEEN


def wrong_outer(monkeypatch, module):
    """In how many random workloads a join some of whose inputs may be absent differs from its meaning."""
    monkeypatch.setattr(windowed, "join_outer", module.join_outer)
    wrong = 0
    for seed in range(WORKLOADS):
        inputs = 3 + seed % 2
        declared, optional = [Window("time", 4 + seed % 9)] * inputs, [seed % inputs, (seed // 3) % inputs]
        join, meaning = WindowJoin(declared, optional=optional), ReferenceOuterJoin(declared, optional)
        found = join.push(ItemColumns.of(workload(seed, inputs)))
        for item in workload(seed, inputs):
            meaning.push(*item)
        wrong += sorted(map(tuple, found.members.tolist())) != sorted(members for _, members in meaning.results)
        if wrong == SEEN:
            break
    return wrong


def test_without_a_mistake_a_join_with_absent_inputs_is_right(monkeypatch):
    assert wrong_outer(monkeypatch, interpreted(KERNELS)) == 0


@pytest.mark.parametrize("name", OUTER_MUTATIONS)
def test_a_mistake_in_a_join_with_absent_inputs_is_seen(name, monkeypatch):
    assert wrong_outer(monkeypatch, interpreted(KERNELS, [OUTER_MUTATIONS[name]])) == SEEN
