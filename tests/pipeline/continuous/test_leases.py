import threading
import time

import pytest

from pipeline.continuous.keys import LOADED_KEY, MEMBERS_KEY
from pipeline.continuous.leases import Beats, Leases, are_all_owned, await_end, begin_job, end_job, remove_unconnected
from pipeline.records import EPOCHS_KEY
from pipeline.sources import EventLogOptions
from pipeline.sources.log_reading import connect
from streams import TASKS_OWNERS_KEY
from tests.builders.waiting import until

pytestmark = pytest.mark.redis

SHARDS = 8


@pytest.fixture
def leases(server):
    begin_job(server.client, "job")
    return lambda member, job="job", life_s=60.0: Leases(server.client, job, member, SHARDS, life_s)


class Holder:
    """A member that loads the shards of each renewal."""

    def __init__(self, leases):
        self._leases = leases
        self._held = {}

    def renew(self):
        self._held = self._leases.renew(self._held)
        return self._held

    def load(self):
        self.renew()
        self.renew()


def test_members_share_the_shards_and_each_change_raises_the_epoch(leases):
    first, second, third = (Holder(leases(name)) for name in ("a", "b", "c"))
    first.load()
    assert second.renew() == {}
    kept = first.renew()
    assert kept == dict.fromkeys(range(4), 1)
    assert second.renew() == dict.fromkeys(range(4, SHARDS), 3)
    assert second.renew() == dict.fromkeys(range(4, SHARDS), 3)
    assert first.renew() == kept
    assert third.renew() == {}
    parts = [first.renew(), second.renew(), third.renew()]
    assert sorted(shard for part in parts for shard in part) == list(range(SHARDS))
    assert sorted(len(part) for part in parts) == [2, 3, 3]


def test_a_member_that_comes_takes_shards_that_are_not_loaded(leases):
    first, second, third = (leases(name) for name in ("a", "b", "c"))
    first.renew()
    loaded = dict.fromkeys((2, 6, 7), 1)
    first.renew(loaded)
    assert second.renew() == dict.fromkeys((1, 3, 4, 5), 2)
    assert first.renew(loaded) == {**loaded, 0: 1}
    assert third.renew() == {5: 3, 0: 2}
    assert (first.renew(loaded), second.renew()) == (loaded, dict.fromkeys((1, 3, 4), 2))


def test_a_state_counts_under_the_epoch_of_its_lease_only(leases, server):
    first = leases("a")
    before = first.renew()
    second = leases("b")
    taken = second.renew()
    second.renew(taken)
    first.renew(before)
    assert {int(shard): int(epoch) for shard, epoch in server.client.hgetall(LOADED_KEY).items()} == {
        **{shard: epoch for shard, epoch in before.items() if shard not in taken},
        **taken,
    }


def test_the_shards_of_a_silent_member_are_free(leases, server):
    silent, other = leases("a"), leases("b")
    assert len(silent.renew()) == SHARDS
    server.client.zadd(MEMBERS_KEY, {"a": 1, "b": server.client.time()[0] * 1_000})
    assert other.renew() == dict.fromkeys(range(SHARDS), 2)
    assert server.client.hgetall(TASKS_OWNERS_KEY)[b"3"] == b"b"


def test_no_shard_moves_where_the_server_stood_still(leases, server):
    """Nobody could beat meanwhile; who is first afterwards does not take the shards of all others."""
    members = [Holder(leases(name)) for name in ("a", "b")]
    members[0].load()
    for _ in range(3):
        held = [one.renew() for one in members]
    now_ms = server.client.time()[0] * 1_000
    server.client.zadd(MEMBERS_KEY, {"a": now_ms - 70_000, "b": now_ms - 80_000})
    assert [one.renew() for one in members] == held
    server.client.zadd(MEMBERS_KEY, {"b": now_ms - 80_000})
    assert len(members[0].renew()) == SHARDS  # it is the only one that is silent


def test_beats_keep_a_member_alive_during_a_long_step(leases, server, monkeypatch):
    monkeypatch.setattr("pipeline.continuous.leases._BEAT_S", 0.02)
    Holder(leases("a", life_s=300)).load()
    server.client.zadd(MEMBERS_KEY, {"a": 1})
    beats = Beats(server.client, "a")
    until(lambda: server.client.zscore(MEMBERS_KEY, "a") != 1, "a beat")
    assert leases("b", life_s=300).renew() == {}
    beats.end()
    server.client.zrem(MEMBERS_KEY, "a")
    beats = Beats(server.client, "a")
    time.sleep(0.1)
    beats.end()
    assert server.client.zscore(MEMBERS_KEY, "a") is None  # a beat renews a member; it never adds one


def test_a_member_without_a_connection_is_removed(leases, server):
    options = EventLogOptions(redis_url=server.url, shards=SHARDS)
    living, dead = connect(options, name="living"), connect(options, name="dead")
    for name, connection in (("living", living), ("dead", dead)):
        connection.ping()
        leases(name).renew()
    assert remove_unconnected(server.client) == []
    dead.close()
    assert remove_unconnected(server.client, least_uptime_s=1e9) == []  # a server that has just been started
    assert remove_unconnected(server.client) == ["dead"]
    assert len(leases("living").renew()) == SHARDS
    living.close()


def test_the_shards_of_a_member_that_leaves_are_free(leases, server):
    leaving, staying = leases("a"), leases("b")
    Holder(leaving).load()
    assert staying.renew() == {}
    leaving.leave()
    assert len(staying.renew()) == SHARDS


def test_the_end_of_all_tasks_is_awaited(leases, server):
    connection = connect(EventLogOptions(redis_url=server.url, shards=SHARDS), name="a")
    connection.ping()
    member = leases("a")
    member.renew()
    begun = time.monotonic()
    threading.Timer(0.3, member.leave).start()
    await_end(server.client, 600)
    assert 0.2 < time.monotonic() - begun < 300
    connection.close()


def test_the_leases_of_a_former_job_end(leases, server):
    former = leases("a")
    former.renew()
    before = server.client.hgetall(EPOCHS_KEY)
    begin_job(server.client, "next")
    assert former.renew() is None
    assert leases("b", job="next").renew() == dict.fromkeys(range(SHARDS), 2)
    assert server.client.hgetall(EPOCHS_KEY) != before
    end_job(server.client, "job")  # another one: it changes nothing
    assert leases("b", job="next").renew() is not None
    end_job(server.client, "next")
    assert leases("b", job="next").renew() is None


def test_a_job_is_ready_when_each_shard_has_an_owner_with_its_state(leases, server):
    member = leases("a")
    epochs = member.renew()
    assert not are_all_owned(server.client, SHARDS, are_loaded=True)
    member.renew(epochs)
    assert are_all_owned(server.client, SHARDS, are_loaded=True)
    server.client.zrem(MEMBERS_KEY, "a")
    assert not are_all_owned(server.client, SHARDS, are_loaded=False)
    leases("b").renew()
    assert not are_all_owned(server.client, SHARDS, are_loaded=True)
    assert are_all_owned(server.client, SHARDS, are_loaded=False)
