import pytest

from streams import Tick, decode_control

pytestmark = pytest.mark.redis

TICK = Tick(time_us=5, cause="clock")


def told(stores):
    return [
        [(one.stream, decode_control(one.kind, one.body)) for one in stores.log.read_range(shard)]
        for shard in range(stores.log.shards())
    ]


def test_all_shards_or_that_of_a_key_are_told(stores):
    stores.announcements.append("orders", TICK)
    stores.announcements.append("payments", TICK, "k6")  # a key of shard 1
    every = ("orders", TICK)
    assert told(stores) == [[every], [every, ("payments", TICK)], [every]]


def test_a_record_whose_reply_was_lost_is_there_once(stores):
    append = stores.announcements._append
    stores.announcements._append = lambda **given: (append(**given), append(**given))[1]
    stores.announcements.append("orders", TICK)
    assert told(stores) == [[("orders", TICK)]] * 3
