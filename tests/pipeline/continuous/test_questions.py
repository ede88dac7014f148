"""Questions to shards that a task holds."""

import orjson
import pytest

from pipeline.continuous.blocks import begin_at
from pipeline.continuous.leases import begin_job, remove_unconnected
from pipeline.continuous.task import ShardTask, TaskOptions
from pipeline.held_shards import HeldOptions, HeldShards
from pipeline.sources import EventLogOptions
from pipeline.sources.log_reading import POSITIONS_KEY
from shards import ShardState
from streams import Ask, PatternOn, StreamDeclaration, StreamOn, answers_key, encode_control, questions_key
from tests.builders.shards import Step, event, log_of

pytestmark = pytest.mark.redis

STEPS: list[Step] = [
    StreamOn(StreamDeclaration(name="orders")),
    PatternOn(name="ab", version=1, text="PATTERN ab EVENT SEQ(A a, B b)"),
    *([event(second, "A", f"k{second}")] for second in range(6)),
]


class Log:
    """Two shards, their questions and their answers."""

    def __init__(self, server):
        self.server, self.client = server, server.client
        self.logs = log_of(STEPS, shards=2)
        self.options = EventLogOptions(redis_url=server.url, shards=2, max_entries=1, results=POSITIONS_KEY)
        begin_at(self.client, {0: "0-0", 1: "0-0"})
        begin_job(self.client, "job")

    def ask(self, number, until=(-1, -1), stream="orders", operator="pattern", **question):
        asked = Ask(id=f"me.{number}", operator=operator, question={"about": "traces", **question})
        for shard, place in enumerate(until):
            position = "0-0" if place is None else self.logs[shard][place].position
            fields = {"id": asked.id, "stream": stream, "body": encode_control(asked), "until": position}
            self.client.xadd(questions_key(shard), fields)

    def answers(self):
        found = [orjson.loads(body) for body in self.client.lrange(answers_key("me.0"), 0, -1)]
        self.client.delete(answers_key("me.0"))
        return {(one["question"], one["shard"]): one for one in found}

    def left(self):
        return [self.client.xlen(questions_key(shard)) for shard in range(2)]

    def task(self):
        return ShardTask(TaskOptions(held=HeldOptions(log=self.options, handover=None), job="job", wait_ms=1))

    def expected(self, shard, position, asked):
        state = ShardState(shard)
        state.apply(one for one in self.logs[shard] if int(one.position[2:]) <= int(position[2:]))
        return state.answer("orders", asked)


@pytest.fixture
def log(server):
    return Log(server)


def test_an_answer_knows_what_was_in_the_log_before(log):
    task = log.task()
    log.server.append(log.logs)
    log.ask(1)
    while not (found := log.answers()):
        assert task.step()
    while log.left() != [0, 0]:
        task.step()
    found |= log.answers()
    asked = Ask(id="me.1", operator="pattern", question={"about": "traces"})
    for shard in range(2):
        answer = found["me.1", shard]
        assert answer["position"] == log.logs[shard][-1].position
        assert answer == log.expected(shard, answer["position"], asked)
    assert sum(found["me.1", shard]["answer"]["open"] for shard in range(2)) == 6
    task.end()


def test_a_question_waits_only_for_its_own_shard(log):
    log.server.append({0: log.logs[0]})
    task = log.task()
    while task._at.get(0) != log.logs[0][-1].position:
        task.step()
    log.ask(1)
    task.step()
    assert list(log.answers()) == [("me.1", 0)]
    assert log.left() == [0, 1]
    log.server.append({1: log.logs[1]})
    while log.left() != [0, 0]:
        task.step()
    assert list(log.answers()) == [("me.1", 1)]
    task.end()


def test_an_idle_task_wakes_for_a_question(log):
    log.server.append(log.logs)
    task = ShardTask(TaskOptions(held=HeldOptions(log=log.options, handover=None), job="job", wait_ms=30_000))
    while [task._at.get(shard) for shard in range(2)] != [log.logs[shard][-1].position for shard in range(2)]:
        task.step()
    for number in range(250):  # more than one page
        log.ask(number)
    while log.left() != [0, 0]:
        task.step()
    assert len(log.answers()) == 500
    task.end()


def test_the_next_owner_answers_what_a_dead_task_has_not(log):
    log.server.append({0: log.logs[0]})
    first = log.task()
    first.step()
    log.ask(1)
    first.step()
    first.end()
    remove_unconnected(log.client)
    log.server.append({1: log.logs[1]})
    second = log.task()
    while log.left() != [0, 0]:
        second.step()
    assert log.answers().keys() == {("me.1", 0), ("me.1", 1)}
    second.end()


def test_a_shard_that_another_task_took_is_not_asked(log):
    log.server.append(log.logs)
    task = log.task()
    while len(task._held) < 2:
        task.step()
    log.ask(1)
    task._next(task._at)
    assert len(task._questions._waiting) == 2
    task._questions.answer({})
    task._questions.answer({0: "9-9", 1: "9-9"})
    assert (log.answers(), log.left()) == ({}, [1, 1])
    task.end()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"operator": "tally"}, "kind 'tally'"),
        ({"stream": "gone"}, "'gone' is not declared"),
        ({"limit": "many"}, "limit"),
    ],
)
def test_who_does_not_answer_says_why(log, asked, words):
    log.server.append(log.logs)
    task = log.task()
    log.ask(1, **asked)
    while log.left() != [0, 0]:
        task.step()
    assert all(words in answer["error"]["message"] for answer in log.answers().values())
    task.end()


def test_a_question_that_breaks_an_operator_stops_nothing(log, monkeypatch):
    def broken(*_):
        raise MemoryError("too many")

    monkeypatch.setattr(HeldShards, "answer", broken)
    log.server.append(log.logs)
    task = log.task()
    log.ask(1)
    while log.left() != [0, 0]:
        assert task.step()
    assert {answer["error"]["message"] for answer in log.answers().values()} == {"MemoryError: too many"}
    task.end()
