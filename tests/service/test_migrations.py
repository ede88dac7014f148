"""A store is migrated once, by one process at a time, however often processes are killed."""

import threading

import pytest

from service import Stores
from service.doctor.examination import look_at_store
from service.errors import BackupRefused, StoreNewer, StoreUnavailable
from service.migrations import Migration, bring_up_to_date, pending
from service.runtime import open_stores
from service.stores import Keyspace, StoreFormat, connect
from tests.builders.service import settings_for

pytestmark = pytest.mark.redis

OLD, NEW = "forestall:colours", "forestall:paints"


def move(client, renew):
    """From a list to a hash, one by one: what was moved before is not in the list any more."""
    while (found := client.lindex(OLD, 0)) is not None:
        client.hset(NEW, found, 1)
        client.lpop(OLD)
        renew()


def count(client, _renew):
    client.set("forestall:paints:count", client.hlen(NEW))


STEPS = (Migration(name="colours become paints", apply=move), Migration(name="paints are counted", apply=count))


@pytest.fixture
def old_store(client, server_url):
    """As a release left it that knew of no formats."""
    Stores(client, server_url, settings_for(server_url)).log.layout.read()
    client.rpush(OLD, "red", "green", "blue")
    return client


def content(client):
    return client.hgetall(NEW), client.get("forestall:paints:count"), client.exists(OLD)


DONE = ({b"red": b"1", b"green": b"1", b"blue": b"1"}, b"3", 0)


def test_an_old_store_takes_every_step(old_store):
    assert [step.name for step in pending(old_store, STEPS)] == ["colours become paints", "paints are counted"]
    bring_up_to_date(old_store, STEPS)
    assert content(old_store) == DONE
    assert pending(old_store, STEPS) == ()
    assert StoreFormat(old_store).read() == 3
    bring_up_to_date(old_store, STEPS)
    assert content(old_store) == DONE


def test_a_store_in_between_takes_what_is_left(old_store):
    bring_up_to_date(old_store, STEPS[:1])
    assert StoreFormat(old_store).read() == 2
    old_store.hset(NEW, "black", 1)
    bring_up_to_date(old_store, STEPS)
    assert content(old_store)[1] == b"4"


def test_a_new_store_is_of_the_newest_format_at_once(client):
    assert pending(client, STEPS) == ()
    bring_up_to_date(client, STEPS)
    assert StoreFormat(client).read() == 3
    assert client.get("forestall:paints:count") is None


def test_a_store_of_a_newer_release_is_refused_unchanged(old_store):
    bring_up_to_date(old_store, STEPS)
    with pytest.raises(
        StoreNewer, match=r"has format 3, of a newer release; this one reads 2 at most\. Run that release"
    ):
        bring_up_to_date(old_store, STEPS[:1])
    assert content(old_store) == DONE


def test_a_step_that_was_killed_is_taken_again(old_store):
    def dying(client, _renew):
        client.hset(NEW, client.lindex(OLD, 0), 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bring_up_to_date(old_store, (Migration(name="dies", apply=dying), STEPS[1]))
    assert StoreFormat(old_store).read() == 1
    bring_up_to_date(old_store, STEPS)
    assert content(old_store) == DONE


def test_of_several_processes_one_takes_the_steps_and_the_others_wait(old_store, server_url):
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def slow(client, renew):
        calls.append(1)
        begun.set()
        go_on.wait()
        move(client, renew)

    steps = (Migration(name="slow", apply=slow), STEPS[1])
    threads = []
    for _ in range(3):
        threads.append(threading.Thread(target=run, args=(server_url, steps)))
        threads[-1].start()
        begun.wait()
    ticks = iter([0.0, 1.0, 200.0])
    with pytest.raises(StoreUnavailable, match="another process has been bringing the store up to date for 120 s"):
        bring_up_to_date(old_store, steps, now=lambda: next(ticks))
    go_on.set()
    for thread in threads:
        thread.join()
    assert calls == [1]
    assert content(old_store) == DONE


def run(url, steps):
    with connect(url) as client:
        bring_up_to_date(client, steps)


def test_who_lost_the_lock_changes_the_format_no_more(old_store):
    def overtaken(client, renew):
        client.set("forestall:store:lock", "another")
        renew()

    with pytest.raises(StoreUnavailable, match="by another process"):
        bring_up_to_date(old_store, (Migration(name="overtaken", apply=overtaken),))
    assert StoreFormat(old_store).read() == 1
    assert old_store.get("forestall:store:lock") == b"another"


def test_a_store_that_is_being_restored_is_refused(client, server_url):
    Keyspace(client).begin_restoring()
    with pytest.raises(BackupRefused, match="run forestall restore again"), open_stores(settings_for(server_url)):
        pass
    with open_stores(settings_for(server_url), as_it_is=True) as stores:
        assert stores.client.ping()


def test_a_process_starts_while_its_server_is_away():
    with open_stores(settings_for("redis://127.0.0.1:1/0")) as stores:
        assert stores.url == "redis://127.0.0.1:1/0"


def test_the_doctor_lists_the_steps_and_takes_none(old_store):
    finding = look_at_store(old_store, STEPS)
    assert finding.verdict == "warning"
    assert finding.found.endswith("colours become paints; paints are counted")
    assert "forestall backup" in finding.advice
    assert content(old_store)[2] == 1
    bring_up_to_date(old_store, STEPS)
    assert look_at_store(old_store, STEPS).verdict == "ok"
    assert look_at_store(old_store, ()).verdict == "problem"
    Keyspace(old_store).begin_restoring()
    assert "forestall restore" in look_at_store(old_store, STEPS).advice
