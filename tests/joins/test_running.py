"""A join that runs: what it keeps of events beside its numbers."""

from joins import JoinRun, merged_id, read_join
from streams import Event, EventBatch

PAIRS = {
    "inputs": [
        {"stream": "a", "as": "o", "closed_by": "unique"},
        {"stream": "b", "as": "p", "closed_by": "unique"},
    ],
    "return": {"o": "id(o)", "p": "id(p)"},
}


def merged(number: int, alias: str, place: int) -> Event:
    data = {"type": "T", "data": {}}
    identity = merged_id("op".index(alias), place, f"{alias}{place}")
    return Event(id=identity, type=alias, time_us=number, key=f"k{place}", data=data)


def test_events_that_can_join_nothing_any_more_are_forgotten_while_it_runs() -> None:
    run, most = JoinRun(read_join(PAIRS), "pairs", 1), 0
    for place in range(200):
        run.process(EventBatch.from_events([merged(2 * place, "o", place)]))
        output = run.process(EventBatch.from_events([merged(2 * place + 1, "p", place)]))
        assert [event.data for event in output.events.to_events()] == [{"o": f"o{place}", "p": f"p{place}"}]
        most = max(most, len(run._held))
    assert most <= 3
    assert run.measures()["stored"] == 0
