import pytest

from pipeline.errors import SourceOptionError
from pipeline.sources import EventLogOptions


def test_options_survive_the_way_through_spark():
    options = EventLogOptions(
        redis_url="redis://h:1/0", shards=3, snapshots="/some/where", max_bytes=5, snapshot_bytes=9
    )
    assert EventLogOptions.from_mapping(options.to_mapping()) == options


def test_what_is_not_said_has_a_default():
    options = EventLogOptions.from_mapping({"redis_url": "redis://h:1/0", "shards": "2"})
    assert options == EventLogOptions(redis_url="redis://h:1/0", shards=2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "option shards is missing"),
        ({"shards": "many"}, "option shards is 'many': give a whole number"),
        ({"shards": "0"}, "option shards is 0: at least 1"),
        ({"shards": "99999"}, "option shards is 99999: at most"),
        ({"shards": "1", "snapshot_bytes": "0"}, "option snapshot_bytes is 0: at least 1"),
        ({"shards": "1", "snapshots": ""}, "option snapshots is empty: write redis, or the path of a folder"),
        ({"shards": "1", "redis_url": ""}, "option redis_url is empty"),
    ],
)
def test_wrong_options_are_refused_in_words(wrong, message):
    with pytest.raises(SourceOptionError, match=message):
        EventLogOptions.from_mapping({"redis_url": "redis://h:1/0", **wrong})
