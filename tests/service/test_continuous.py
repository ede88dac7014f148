"""Continuous tasks and the indexer, stepped in any order and killed, give the rows of shards in one process."""

import random
import threading
from dataclasses import replace
from itertools import pairwise

import pytest
import redis

from pipeline.continuous.blocks import BlockWriter, positions
from pipeline.continuous.indexer import Indexer
from pipeline.continuous.leases import begin_job, raise_epochs, remove_unconnected
from pipeline.continuous.query import finish_blocks, take_over
from pipeline.continuous.task import ShardTask, TaskOptions
from pipeline.errors import QueryFailed
from pipeline.sources.log_reader import log_ends
from pipeline.sources.log_reading import POSITIONS_KEY, connect
from service import AlertSink, Registration, Stores
from service.errors import StoreUnavailable
from service.intake.posting import Intake
from service.processes import timekeeper
from service.processes.cluster import job_options
from service.processes.timekeeper import Timekeeper
from streams import log_key, position_order
from tests.builders.policies import AnyFirst
from tests.builders.registering import register_pattern
from tests.builders.service import HandClock, settings_for
from tests.builders.waiting import until
from tests.service.test_derived_chain import ORDERS, REGISTERED, Job, expected, posted, settled

pytestmark = [pytest.mark.redis, pytest.mark.slow]


class Continuous:
    """Tasks and the indexer of a continuous job in one thread."""

    def __init__(self, settings, stores, tasks=2, kills=0.05, policy=None):
        self.policy = policy
        self.options = take_over(job_options(settings, stores.log.layout.read(), stores.url, tasks=1))
        self.server = connect(self.options.log)
        self.sink = AlertSink(stores, HandClock())
        self.kills = kills
        begin_job(self.server, "job")
        self.tasks = [self.task() for _ in range(tasks)]
        self.indexer = self.recovered()

    def task(self):
        held = self.options.held if self.policy is None else replace(self.options.held, policy=self.policy)
        return ShardTask(TaskOptions(held=held, job="job", wait_ms=1))

    def recovered(self):
        indexer = Indexer(self.options.log, self.sink.index, lambda _: None)
        indexer.recover()
        return indexer

    def step(self, stores, chance):
        """Let one of the processes do something, or kill it; whether there is more to do."""
        number = chance.randrange(len(self.tasks) + 1)
        is_killed = chance.random() < self.kills
        if number == len(self.tasks):
            if is_killed:
                self.indexer = self.recovered()
            self.indexer.write_next(wait_ms=1)
        else:
            if is_killed:
                self.tasks[number].end()
                remove_unconnected(self.server)
                self.tasks[number] = self.task()
            self.tasks[number]._renewed = 0.0
            self.tasks[number].step()
        ends = log_ends(self.options.log)
        return any(
            position_order(self.indexer.afters[shard]) < position_order(ends[str(shard)])
            for shard in range(self.options.log.shards)
        )

    def end(self):
        for task in self.tasks:
            task.end()
        self.server.close()  # a connection that only the collector closes fails the next test


@pytest.fixture
def settings(server_url, tmp_path):
    return settings_for(server_url, data_dir=tmp_path / "data", shards=3, runtime="continuous")


@pytest.fixture
def stores(client, server_url, settings, monkeypatch):
    monkeypatch.setattr(timekeeper, "_QUIET_US", 0)
    stores = Stores(client, server_url, settings)
    registration = Registration(stores, settings, HandClock())
    registration.declare_stream(ORDERS)
    for _, (stream, text) in REGISTERED:
        register_pattern(registration, stream, text)
    return stores


def found(stores):
    alerts = [alert["id"] for alert in stores.alerts.page(limit=10_000).items]
    return sorted(alerts + [event["id"] for event in stores.results["derived"].page(10_000).items])


def post(stores, settings, batches, jobs, chance):
    intake = Intake(stores.log, stores.registry, settings.limits, HandClock())
    for batch in batches:
        intake.ingest("orders", batch)
        if chance.random() < 0.5:
            for job in jobs:
                job.step(stores, chance)


def come_to_rest(job, stores, chance):
    for _ in range(6):
        Timekeeper(stores).look()
        settled(job, stores, chance)


@pytest.mark.parametrize("seed", range(4))
def test_any_schedule_gives_the_rows_of_one_process(stores, settings, seed):
    chance, batches = random.Random(seed), posted(seed)
    job = Continuous(settings, stores, tasks=1 + seed % 3, policy=None if seed % 2 else AnyFirst(chance))
    try:
        post(stores, settings, batches, [job], chance)
        come_to_rest(job, stores, chance)
    finally:
        job.end()
    assert found(stores) == expected(batches)
    counted = sum(one["count"] for one in stores.results["derived"].counts())
    assert counted == len(found(stores)) - len(stores.alerts.page(limit=10_000).items)


def test_steps_with_many_results_have_fewer_entries(stores, settings, monkeypatch):
    most, written = 2_000, list[tuple[int, int]]()
    monkeypatch.setattr("pipeline.continuous.task._MOST_WRITTEN", most)
    chance, batches = random.Random(12), cut(posted(12, orders=30), 5)
    for batch in batches:
        post(stores, settings, [batch], [], chance)
    job = Continuous(settings, stores, tasks=1)
    write = BlockWriter.write

    def noted(writer, step):
        inside = job.server.xrange(log_key(step.shard), min=f"({step.before}", max=step.after)
        written.append((len(inside or ()), step.size_bytes))
        return write(writer, step)

    monkeypatch.setattr(BlockWriter, "write", noted)
    come_to_rest(job, stores, chance)
    job.end()
    assert all(size <= most or entries == 1 for entries, size in written)
    assert max(size for _, size in written) > most / 2
    require_each_once(stores, batches)


def test_micro_batches_and_continuous_tasks_take_turns(stores, settings):
    chance, batches = random.Random(5), posted(5)
    borders = [len(batches) * turn // 4 for turn in range(5)]
    parts = [batches[start:end] for start, end in pairwise(borders)]
    for turn, part in enumerate(parts):
        if turn % 2:
            job = Continuous(settings, stores)
            post(stores, settings, part, [job], chance)
            settled(job, stores, chance)
            job.end()
        else:
            batches_of = into_micro_batches(settings, stores)
            post(stores, settings, part, [batches_of], chance)
            settled(batches_of, stores, chance)
    last = Continuous(settings, stores)
    come_to_rest(last, stores, chance)
    last.end()
    assert found(stores) == expected(batches)


def test_an_idle_task_takes_the_shards_of_a_dead_one_at_once(stores, settings):
    job = Continuous(settings, stores, tasks=0)
    patient = TaskOptions(held=job.options.held, job="job", wait_ms=25_000)  # less than the connection's 30 s
    dead, idle = ShardTask(patient), ShardTask(patient)
    dead._renew_leases()
    idle._renew_leases()
    dead._renew_leases()  # gives back what is beyond its part
    taken, is_over = threading.Event(), threading.Event()

    def wait():
        while len(idle._held) < 3 and not is_over.is_set():
            idle.step()
        taken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        assert not taken.wait(0.3)
        dead._beats.end()
        dead._server.close()
        assert len(remove_unconnected(job.server)) == 1
        assert taken.wait(300)
        assert len(idle._held) == 3
    finally:  # a thread that is still running would take the shards of later tests
        is_over.set()
        thread.join()
        for task in (dead, idle):
            task.end()


@pytest.mark.parametrize("settles", [True, False], ids=["later batches written", "the same batch written"])
def test_a_driver_that_was_stopped_in_a_batch_writes_nothing_again(stores, settings, settles):
    chance, batches = random.Random(8), cut(posted(8), 20)
    post(stores, settings, batches[:4], [], chance)
    job = Continuous(settings, stores, tasks=1, kills=0.0)

    def stopped(rows, number):
        """The sink of a driver that is stopped before it writes, while the next driver takes over."""
        job.indexer = job.recovered()
        if settles:
            settled(job, stores, chance)
        job.sink(rows, number)

    former = Indexer(job.options.log, stopped, lambda _: None)
    former.recover()
    advance(job.tasks[0])
    if settles:
        with pytest.raises(redis.ResponseError, match="SUPERSEDED"):
            former.write_next(wait_ms=1)
    else:
        former.write_next(wait_ms=1)
    close(former)
    post(stores, settings, batches[4:], [], chance)
    come_to_rest(job, stores, chance)
    job.end()
    require_each_once(stores, batches)


def test_a_driver_that_was_stopped_between_batches_notes_no_other(stores, settings, monkeypatch):
    for module in ("blocks", "indexer"):  # so that a batch has one block, and is not noted as over
        monkeypatch.setattr(f"pipeline.continuous.{module}.BATCH_BYTES", 1)
    chance, batches = random.Random(9), cut(posted(9), 20)
    job = Continuous(settings, stores, tasks=1, kills=0.0)
    former = job.recovered()

    def interrupted(rows, number):
        """The sink of a driver that dies after writing, once a former driver has tried to go on."""
        job.sink(rows, number)
        with pytest.raises(QueryFailed, match="another driver"):
            former.write_next(wait_ms=1)
        raise Interrupted

    for part in (batches[:4], batches[4:]):
        post(stores, settings, part, [], chance)
        advance(job.tasks[0])
        job.indexer.write_next(wait_ms=1)
    job.indexer = Indexer(job.options.log, interrupted, lambda _: None)
    with pytest.raises(Interrupted):
        job.indexer.recover()
    close(former)
    close(job.indexer)
    job.indexer = job.recovered()
    come_to_rest(job, stores, chance)
    job.end()
    require_each_once(stores, batches)


def close(indexer):
    indexer._server.close()
    indexer._reader.stop()


class Interrupted(BaseException):
    """The end of a driver."""


def require_each_once(stores, batches):
    assert found(stores) == expected(batches)
    counted = sum(one["count"] for one in stores.results["derived"].counts())
    assert counted == len(stores.results["derived"].page(10_000).items)


def cut(batches, size):
    events = [event for batch in batches for event in batch]
    return [events[start : start + size] for start in range(0, len(events), size)]


def limited(settings, **limits):
    return settings.model_copy(update={"batch": settings.batch.model_copy(update=limits)})


def advance(task, times=3):
    for _ in range(times):
        task._renewed = 0.0
        task.step()


def into_micro_batches(settings, stores):
    as_batches = settings.model_copy(update={"runtime": "micro-batch"})
    options = job_options(as_batches, stores.log.layout.read(), stores.url, 1)
    finish_blocks(options, AlertSink(stores, HandClock()))
    return Job(as_batches, stores)


def test_blocks_before_the_first_batch_are_written_before_micro_batches(stores, settings):
    chance, batches = random.Random(1), posted(1)
    post(stores, settings, batches, [], chance)
    job = Continuous(settings, stores, tasks=1)
    advance(job.tasks[0])
    job.end()
    batches_of = into_micro_batches(settings, stores)
    come_to_rest(batches_of, stores, chance)
    assert found(stores) == expected(batches)


@pytest.mark.parametrize("is_continuous", [False, True])
def test_a_task_of_a_former_job_writes_nothing_into_the_next(stores, settings, is_continuous):
    chance, batches = random.Random(2), posted(2)
    post(stores, settings, batches[: len(batches) // 2], [], chance)
    former = Continuous(settings, stores, tasks=1)
    advance(former.tasks[0], 1)
    job = None if is_continuous else into_micro_batches(settings, stores)
    if is_continuous:
        take_over(former.options)
    before = former.server.hgetall(POSITIONS_KEY)
    post(stores, settings, batches[len(batches) // 2 :], [], chance)
    former.tasks[0].step()
    assert former.server.hgetall(POSITIONS_KEY) == before
    former.end()
    come_to_rest(job or Continuous(settings, stores), stores, chance)
    assert found(stores) == expected(batches)


def test_a_refused_step_costs_one_loading(stores, settings, monkeypatch):
    chance, batches = random.Random(3), cut(posted(3), 10)
    post(stores, settings, batches[:3], [], chance)
    job = Continuous(settings, stores, tasks=1)
    task = job.tasks[0]
    advance(task, 1)
    raise_epochs(job.server, 3)
    loads = []
    load = task._shards.load

    def noted(shard, epoch):
        loads.append(shard)
        load(shard, epoch)

    monkeypatch.setattr(task._shards, "load", noted)
    for batch in batches[3:]:
        post(stores, settings, [batch], [], chance)
        advance(task, 1)
    assert sorted(loads) == list(range(3))
    come_to_rest(job, stores, chance)
    job.end()
    assert found(stores) == expected(batches)


@pytest.mark.parametrize("is_log_older", [True, False])
def test_a_server_that_loses_its_last_writes_leaves_no_gap(stores, settings, is_log_older):
    chance, batches = random.Random(4), cut(posted(4), 10)
    settings = limited(settings, max_entries=1)
    post(stores, settings, batches[:3], [], chance)
    job = Continuous(settings, stores, kills=0.0)
    settled(job, stores, chance)
    saved = all_keys(job.server)
    post(stores, settings, batches[3:6], [], chance)
    if not is_log_older:
        saved = all_keys(job.server)
    settled(job, stores, chance)
    job.server.flushall()
    for key, value in saved.items():
        job.server.restore(key, 0, value)
    job.indexer._run_id = "of the server before"
    if is_log_older:
        post(stores, settings, batches[3:6], [], chance)
    job.indexer.sweep()
    settled(job, stores, chance)
    post(stores, settings, batches[6:], [job], chance)
    come_to_rest(job, stores, chance)
    job.end()
    assert found(stores) == expected(batches)


@pytest.mark.parametrize("failures", [2, 3])
def test_a_batch_that_the_server_rejects_for_now_is_written_again_under_its_number(stores, settings, failures):
    chance, batches = random.Random(10), cut(posted(10), 20)
    post(stores, settings, batches[:4], [], chance)
    job = Continuous(settings, stores, tasks=1, kills=0.0)
    advance(job.tasks[0])
    numbers = []

    def failing(rows, number):
        """The sink while the server is away: it has written a part."""
        numbers.append(number)
        job.sink([row for row in rows if row.kind not in ("stats", "rekeyed")], number)
        if len(numbers) <= failures:
            raise StoreUnavailable("Redis does not answer")
        job.sink(rows, number)

    indexer = Indexer(job.options.log, failing, lambda _: None)
    indexer.start()
    until(lambda: indexer.error or (len(numbers) >= 3 and failures < 3), "the indexer", pause_s=0.01)
    indexer.stop()
    assert (set(numbers), isinstance(indexer.error, StoreUnavailable)) == ({1}, failures == 3)
    indexer.error = None  # its traceback would keep the connections of this job open until the collector runs
    close(indexer)
    job.indexer = job.recovered()
    post(stores, settings, batches[4:], [], chance)
    come_to_rest(job, stores, chance)
    job.end()
    require_each_once(stores, batches)


def test_tasks_keep_their_states_when_the_server_is_started_again(stores, settings, monkeypatch):
    chance, batches = random.Random(11), cut(posted(11), 20)
    job = Continuous(settings, stores, tasks=1, kills=0.0)
    post(stores, settings, batches[:4], [], chance)
    settled(job, stores, chance)
    loads: list[int] = []
    monkeypatch.setattr(job.tasks[0]._shards, "load", lambda shard, epoch: loads.append(shard))
    job.indexer._run_id = "of the server before"
    job.indexer.sweep()
    post(stores, settings, batches[4:], [], chance)
    come_to_rest(job, stores, chance)
    job.end()
    assert loads == []
    require_each_once(stores, batches)


def all_keys(server):
    return {key: server.dump(key) for key in server.scan_iter()}


def test_a_step_is_written_before_the_next_of_its_shard_begins(stores, settings, monkeypatch):
    post(stores, settings, cut(posted(6), 20), [], random.Random(6))
    job = Continuous(limited(settings, max_entries=1), stores, tasks=1)
    (task,) = job.tasks
    step = task._shards.advance
    begun: dict[int, list[tuple[str, str]]] = {shard: [] for shard in range(3)}

    def noted(shard, after, entries, stops):
        begun[shard].append((after, positions(job.server, 3)[shard]))
        return step(shard, after, entries, stops)

    monkeypatch.setattr(task._shards, "advance", noted)
    for _ in range(100):
        if min(map(len, begun.values())) < 3:
            task.step()
    job.end()
    assert min(map(len, begun.values())) >= 3
    for steps in begun.values():
        assert all(after == written for after, written in steps)
        assert len({after for after, _ in steps}) == len(steps)


def test_a_backlog_is_read_in_parts_the_shard_that_is_least_far_first(stores, settings):
    post(stores, settings, posted(7), [], random.Random(7))
    job = Continuous(limited(settings, max_bytes=1), stores, tasks=1)
    (task,) = job.tasks
    task._renew_leases()
    read = []
    for _ in range(6):
        (shard,) = task._waiting()
        read.append((position_order(task._at[shard]), min(map(position_order, task._at.values()))))
        task.step()
    assert all(place == least for place, least in read)
    assert len({place for place, _ in read}) > 1
    job.end()
