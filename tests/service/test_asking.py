"""Questions that cannot be sent fail, and give their seats back."""

import asyncio
import time
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from service.errors import AnswersLate
from service.questions.asking import Questions, ShardQuestion

SETTINGS: Any = SimpleNamespace(limits=SimpleNamespace(questions_at_once=1, question_wait_s=0.2))
CLOCK: Any = None  # the pipeline is not examined


class Stores:
    """Stores of a stream with one shard, which never answers."""

    def __init__(self, error=None):
        self.questions = SimpleNamespace(take=self.take)
        self.announcements = SimpleNamespace(ask=self.ask)
        self._error = error

    def take(self, asker, wait_s):
        time.sleep(0.01)
        return []

    def ask(self, stream, asked, wait_s, key):
        if self._error is not None:
            raise self._error
        return 1


def read(readings):
    readings["missing"] = []
    return ShardQuestion(stream="s", operator="cases", question={})


async def errors_of(stores, times):
    """The types of the errors of questions that are asked one after another."""
    questions, errors = Questions(stores, SETTINGS, CLOCK), []
    for _ in range(times):
        try:
            await asyncio.wait_for(questions.ask(read), 30)
        except (RuntimeError, TimeoutError, AnswersLate) as error:
            errors.append(type(error))
    await asyncio.to_thread(questions.end)
    return errors


def raising_once(function, error):
    """A function that fails the first time it is called."""
    waiting = [error]

    def failing(*arguments, **options):
        if waiting:
            raise waiting.pop()
        return function(*arguments, **options)

    return failing


@pytest.mark.parametrize("place", ["answers", "sending"])
def test_a_thread_that_cannot_start_fails_one_question_only(monkeypatch, place):
    error = RuntimeError("can't start new thread")
    if place == "answers":
        monkeypatch.setattr(Thread, "start", raising_once(Thread.start, error))
    else:
        monkeypatch.setattr(asyncio, "to_thread", raising_once(asyncio.to_thread, error))
    assert asyncio.run(errors_of(Stores(), 3)) == [RuntimeError, AnswersLate, AnswersLate]


def test_a_time_limit_of_sending_is_no_late_answer():
    assert asyncio.run(errors_of(Stores(TimeoutError("redis")), 2)) == [TimeoutError, TimeoutError]
