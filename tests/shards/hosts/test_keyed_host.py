"""Hosts of operators that are independent of each other: versions, ends of traces, saved state."""

import pytest

from shards.entries import StoredEntry
from shards.hosts.keyed_host import KeyedHost
from shards.operators import Origin
from streams import ControlRecordError, Definition, EventBatch, Input, StreamDeclaration
from tests.builders.shards import event
from tests.contracts.tally import Tally, TallyKind

ENDING = StreamDeclaration(name="orders", end_events=("End",), idle_timeout=5)
ORIGIN = Origin(shard=0, entry=StoredEntry(position="1-1", kind="events", stream="orders", body=b""))


def tally(every, version=1, name="t"):
    body = {"every": every}
    return Definition(kind="tally", name=name, version=version, inputs=(Input("orders"),), body=body)


def host_of(*definitions, declaration=ENDING):
    host = TallyKind().host(declaration, "")
    for one in definitions:
        host.start(one, "fresh")
    return host


def reached(output):
    return [(body["tally"], body["key"], body["n"]) for _, _, body in output.results(ORIGIN)]


def test_a_trace_ends_with_an_end_event_a_record_and_the_idle_timeout():
    host = host_of(tally(3))
    assert reached(host.process(EventBatch.from_events([]))) == []
    rows = [event(1, "A"), event(2, "A"), event(3, "End"), event(4, "A"), event(5, "A")]  # the third is End
    assert reached(host.process(EventBatch.from_events(rows))) == [("t", "k", 3)]
    host.end_trace("k", None)
    rows = [event(6, "A"), event(7, "A"), event(12, "A"), event(13, "A"), event(14, "A")]  # idle from 7 on
    assert reached(host.process(EventBatch.from_events(rows))) == [("t", "k", 14)]
    host.process(EventBatch.from_events([event(15, "A")]))
    assert host.measures() == {"keys": 1}
    host.advance_time(20_000_000)
    assert host.measures() == {"keys": 0}


@pytest.mark.parametrize("cut", range(1, 6))
def test_saving_and_loading_changes_nothing(cut):
    rows = [event(1, "A"), event(2, "A", "l"), event(4, "A", "l"), event(8, "A", "l"), event(9, "A"), event(10, "A")]
    whole = reached(host_of(tally(2), tally(3, name="u")).process(EventBatch.from_events(rows)))
    host = host_of(tally(2), tally(3, name="u"))
    found = reached(host.process(EventBatch.from_events(rows[:cut])))
    loaded = TallyKind().host(ENDING, "", host.dump())
    assert (list(loaded.names), loaded.newest_us) == (["t", "u"], host.newest_us)
    assert sorted(found + reached(loaded.process(EventBatch.from_events(rows[cut:])))) == sorted(whole)


def test_another_version_begins_from_nothing_unless_the_operator_can_continue():
    class Lasting(Tally):
        def continue_as(self, definition):
            self.definition = definition
            return self.process(EventBatch.from_events([]))

    for operator, n in ((Tally, 4), (Lasting, 3)):
        host = KeyedHost("tally", ENDING, "", operator)
        host.start(tally(2), "fresh")
        host.process(EventBatch.from_events([event(1, "A")]))
        host.start(tally(2), "keep")  # the same version
        host.start(tally(2, version=2), "keep")
        assert reached(host.started()) == []
        assert reached(host.process(EventBatch.from_events([event(3, "A"), event(4, "A")]))) == [("t", "k", n)]


def test_a_changed_declaration_ends_traces():
    host = host_of(tally(2), declaration=StreamDeclaration(name="orders", idle_timeout=50))
    host.process(EventBatch.from_events([event(1, "A"), event(20, "B", "other")]))
    host.declare(ENDING)
    assert host.measures() == {"keys": 1}
    host.finish()
    assert host.measures() == {"keys": 0}


def test_an_operator_that_does_not_run_cannot_stop():
    host = host_of(tally(2))
    host.stop("t")
    with pytest.raises(ControlRecordError, match="no tally 't' runs on the stream 'orders'"):
        host.stop("t")
