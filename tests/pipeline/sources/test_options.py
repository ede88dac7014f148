import pytest

from pipeline.errors import SourceOptionError
from pipeline.sources import EventLogOptions


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shards": 0}, "option shards is 0: at least 1"),
        ({"shards": 99999}, "option shards is 99999: at most"),
        ({"snapshot_bytes": 0}, "option snapshot_bytes is 0: at least 1"),
        ({"max_entries": -1}, "option max_entries is -1: at least 1"),
        ({"snapshots": ""}, "option snapshots is empty: write redis, or the path of a folder"),
        ({"redis_url": ""}, "option redis_url is empty"),
    ],
)
def test_wrong_options_are_refused_in_words(wrong, message):
    with pytest.raises(SourceOptionError, match=message):
        EventLogOptions(**{"redis_url": "redis://h:1/0", "shards": 1, **wrong})
