"""A task reads the entries of its shards."""

import math
from typing import ClassVar

import pytest

from pipeline.continuous.blocks import begin_at
from pipeline.continuous.leases import begin_job, wake
from pipeline.continuous.task import ShardTask, TaskOptions
from pipeline.held_shards import HeldOptions
from pipeline.records import EPOCHS_KEY
from pipeline.sources import EventLogOptions
from pipeline.sources.log_reading import POSITIONS_KEY
from streams import StreamDeclaration, StreamOn, Tick
from tests.builders.shards import log_of
from tests.builders.waiting import until

pytestmark = pytest.mark.redis

TICKS = [Tick(time_us=time_us, cause="events") for time_us in (1, 2)]
ENTRIES = log_of([StreamOn(StreamDeclaration(name="orders")), *TICKS])[0]


class InOrder:
    """Chooses shard 0, then 1; as it chooses, entries arrive."""

    name: ClassVar[str] = "in-order"

    def __init__(self, arrive):
        self.arrive = arrive

    def choose(self, waiting):
        self.arrive()
        return min(waiting)


@pytest.mark.parametrize(("max_entries", "taken"), [(64, [1, 2]), (1, [1, 1])])
def test_a_shard_takes_what_arrived_since_the_round_began(server, max_entries, taken):
    options = EventLogOptions(redis_url=server.url, shards=2, max_entries=max_entries, results=POSITIONS_KEY)
    begin_at(server.client, {0: "0-0", 1: "0-0"})
    begin_job(server.client, "job")
    arriving = iter([{}, {}, dict.fromkeys(range(2), ENTRIES[2:])])
    held = HeldOptions(log=options, handover=None, policy=InOrder(lambda: server.append(next(arriving, {}))))
    task = ShardTask(TaskOptions(held=held, job="job", wait_ms=1))
    positions = [entry.position for entry in ENTRIES]
    server.append(dict.fromkeys(range(2), ENTRIES[:1]))
    while list(task._at.values()) != positions[:1] * 2:
        task.step()
    server.append(dict.fromkeys(range(2), ENTRIES[1:2]))
    while task._at[0] == positions[0]:
        task.step()
    assert [positions.index(task._at[shard]) for shard in range(2)] == taken
    task.end()


@pytest.fixture
def task(server):
    begin_at(server.client, {0: "0-0", 1: "0-0"})
    begin_job(server.client, "job")
    held = HeldOptions(log=EventLogOptions(redis_url=server.url, shards=2, results=POSITIONS_KEY), handover=None)
    task = ShardTask(TaskOptions(held=held, job="job", wait_ms=1))
    yield task
    task.end()


def test_a_task_that_has_ended_has_closed_its_connections(server):
    begin_at(server.client, {0: "0-0"})
    begin_job(server.client, "job")
    held = HeldOptions(log=EventLogOptions(redis_url=server.url, shards=1, results=POSITIONS_KEY), handover=None)
    others = len(server.client.client_list())
    task = ShardTask(TaskOptions(held=held, job="job", wait_ms=1))
    server.append({0: ENTRIES[:1]})
    while task._at.get(0) != ENTRIES[0].position:
        task.step()
    assert len(server.client.client_list()) > others
    task.end()
    until(lambda: len(server.client.client_list()) == others, "the end of the connections")


def test_taken_shards_are_loaded_one_after_another(task):
    task._renew_leases()
    assert (list(task._held), list(task._taken)) == ([0], [1])
    assert task._waiting() == {}  # at once
    task._renew_leases()
    assert (list(task._held), list(task._taken)) == ([0, 1], [])


def test_shards_are_advanced_while_others_are_loaded(server, task, monkeypatch):
    task._renew_leases()
    task._waiting()  # it sees its own wake
    monkeypatch.setattr("pipeline.continuous.task._RENEWED_S", 1e6)
    task._renewed = -1e9
    server.append({0: ENTRIES[:1]})
    task.step()
    assert (task._at[0], list(task._held)) == (ENTRIES[0].position, [0, 1])


def test_a_shard_is_advanced_although_renewing_takes_longer_than_it_lasts(server, task, monkeypatch):
    """As on a machine that is very busy: the step is short, and all else is not."""
    while len(task._held) < 2 or task._has_loaded:
        task.step()
    monkeypatch.setattr("pipeline.continuous.task._RENEWED_S", 0.0)
    server.append({0: ENTRIES[:1]})
    task.step()
    assert task._at[0] == ENTRIES[0].position


def test_a_task_that_always_has_entries_renews_its_leases_when_it_is_woken(server, task):
    while len(task._held) < 2 or task._has_loaded:
        task.step()
    for entry in ENTRIES[:2]:
        task._renewed = math.inf
        server.append({0: [entry]})
        task.step()
        assert task._at[0] == entry.position
    assert task._renewed == math.inf
    wake(server.client)
    task.step()
    assert task._renewed == -0.5


def test_a_shard_whose_step_is_refused_is_lost_at_once(server, task):
    while len(task._held) < 2 or task._has_loaded:
        task.step()
    task._renewed = math.inf
    server.client.hincrby(EPOCHS_KEY, "0", 1)  # another task holds it now
    server.append({0: [ENTRIES[0]]})
    task.step()
    assert (list(task._held), list(task._at), task._renewed) == ([1], [1], -0.5)
