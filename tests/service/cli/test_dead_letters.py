"""``forestall dead-letters``, against the real API."""

import pytest

from service import Intake
from service.intake.posting import FeedPart, Unreadable
from service.stores import FeedMark, FeedStep
from streams import StreamDeclaration

pytestmark = pytest.mark.redis


@pytest.mark.parametrize(
    ("origin", "shown"),
    [({"file": "a.jsonl", "row": 2}, "file a.jsonl row 2"), ({"topic": "t", "partition": 0, "offset": 7}, "offset 7")],
)
def test_the_list_of_dead_letters_shows_where_a_feed_read_them(call, api_url, stores, settings, clock, origin, shown):
    stores.registry.declare_stream(StreamDeclaration(name="orders"))
    intake = Intake(stores.log, stores.registry, settings.limits, clock)
    begin = FeedMark(checkpoint="c")
    stores.feeds.begin("f", begin, "orders")
    part = FeedPart(step=FeedStep(feed="f", before=begin, after=FeedMark(checkpoint="c", row=1)), origins=[origin])
    intake.ingest("orders", [Unreadable(detail="cannot be read", text="x")], part=part)
    assert shown in call("dead-letters", "list", "--url", api_url)[1]
