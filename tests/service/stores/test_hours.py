"""Counts by hour of event time, against plain counting; written once, however often rows are."""

from collections import Counter

import orjson
import pytest

from service.stores.results.hours import HOUR_US, KEPT_HOURS, hours_key
from shards import ALERT, RESULT_KINDS
from streams import format_time
from tests.builders.service import sink_row

pytestmark = pytest.mark.redis

ENDING = RESULT_KINDS["ending"]
ANY = {"stream": None, "subject": None}


def row(number, hour, *, kind=ALERT, stream="orders", pattern="p"):
    body = {"id": f"r{number}", "stream": stream, "pattern": pattern, kind.timed_by: format_time(hour * HOUR_US + 5)}
    return sink_row(kind=kind.name, stream=stream, id=f"r{number}", body=orjson.dumps(body))


FAR_US = 10**15


def counted(stores, kind=ALERT, since_us=None, until_us=FAR_US, **chosen):
    found, _ = stores.hours.read(kind, {**ANY, **chosen}, since_us, until_us)
    return {(one.hour_us // HOUR_US, one.stream, one.subject): one.count for one in found}


def test_alerts_are_counted_once_by_hour_stream_and_pattern(stores):
    hours = [7, 9, 9, 8, 7]
    rows = [row(number, hour, pattern="pq"[number % 2]) for number, hour in enumerate(hours)]
    for some in (rows[:3], rows[1:4], rows):
        stores.alerts.append(some, [], 0)
    assert counted(stores) == Counter((hour, "orders", "pq"[number % 2]) for number, hour in enumerate(hours))
    assert counted(stores, subject="q") == {(9, "orders", "q"): 1, (8, "orders", "q"): 1}
    assert counted(stores, stream="others") == {}
    assert set(counted(stores, since_us=8 * HOUR_US, until_us=9 * HOUR_US)) == {(8, "orders", "q")}
    assert set(counted(stores, until_us=8 * HOUR_US + 1)) == {(8, "orders", "q"), (7, "orders", "p")}


def test_listed_early_terminations_are_counted_and_rows_without_a_time_are_not(stores):
    store = stores.results["ending"]
    timeless = sink_row(kind="ending", stream="orders", id="t", body=orjson.dumps({"id": "t", "pattern": "p"}))
    store.append([row(1, 3, kind=ENDING), timeless], 1)
    store.append([row(1, 3, kind=ENDING)], 1)
    assert counted(stores, ENDING) == {(3, "orders", "p"): 1}
    assert counted(stores) == {}


def test_the_newest_hours_are_kept_and_by_default_two_days_are_read(stores, client):
    stores.alerts.append([row(hour, hour) for hour in range(KEPT_HOURS + 9)], [], FAR_US)
    assert client.zcard(hours_key(ALERT)) == len(list(client.scan_iter(hours_key(ALERT) + ":*"))) == KEPT_HOURS
    found, since_us = stores.hours.read(ALERT, ANY, None, FAR_US)
    assert (len(found), since_us) == (48, found[0].hour_us)
    assert len(counted(stores, since_us=0)) == KEPT_HOURS
    assert stores.hours.read(ENDING, ANY, None, FAR_US) == ([], None)


def test_the_default_beginning_is_that_of_the_chosen_stream(stores):
    stores.alerts.append([row(1, 100), row(2, 500, stream="others"), row(3, 53), row(4, 52)], [], FAR_US)
    assert set(counted(stores, stream="orders")) == {(100, "orders", "p"), (53, "orders", "p")}
    assert stores.hours.read(ALERT, {**ANY, "stream": "orders"}, None, FAR_US)[1] == 53 * HOUR_US


def test_results_far_in_the_future_displace_none_of_the_present(stores, client):
    hours = [*range(KEPT_HOURS), *range(2_000, 2_001 + KEPT_HOURS)]
    stores.alerts.append([row(hour, hour) for hour in hours], [], KEPT_HOURS * HOUR_US)
    assert sorted(map(int, client.zrange(hours_key(ALERT), 0, -1))) == hours[:-1]
    assert len(counted(stores, since_us=0, until_us=KEPT_HOURS * HOUR_US)) == KEPT_HOURS
    stores.results["ending"].count([], 2)
    assert client.zcard(hours_key(ALERT)) == 2 * KEPT_HOURS


def test_counts_are_removed_with_their_stream(stores, client):
    stores.alerts.append([row(1, 4), row(2, 4, stream="others"), row(3, 5)], [], 0)
    stores.results["ending"].append([row(4, 4, kind=ENDING)], 1)
    stores.hours.forget("orders")
    assert counted(stores) == {(4, "others", "p"): 1}
    assert counted(stores, ENDING) == {}
    assert client.zrange(hours_key(ALERT), 0, -1) == [b"4"]


def test_of_very_many_counts_those_of_the_newest_hours_are_read(stores, monkeypatch):
    monkeypatch.setattr("service.stores.results.hours._MOST_COUNTS", 3)
    stores.alerts.append([row(number, number // 2, pattern=f"p{number}") for number in range(6)], [], 0)
    found, since_us = stores.hours.read(ALERT, ANY, 0, FAR_US)
    assert ([one.hour_us // HOUR_US for one in found], since_us) == ([2, 2], 2 * HOUR_US)
