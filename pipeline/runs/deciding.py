"""The decisions of a run. A task makes them before the rounds, and reads the observed streams for this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from pipeline.runs.history import History, batches_of, parts_of
from pipeline.runs.merging import Portion, in_order
from shards import DeciderState, Decision, RoundPlan, Variant, decisions_of, observed_streams
from streams import EventBatch, EventFileError


def observing_variants(histories: Mapping[str, History], plan: RoundPlan) -> list[tuple[int, Variant]]:
    """Return the variants, with their index, that need decisions because deciders observe one of the histories."""
    return [
        (number, variant)
        for number, variant in enumerate(plan.variants)
        if observed_streams(variant) & histories.keys()
    ]


def decided(histories: Mapping[str, History], observing: tuple[int, Variant]) -> Iterator[Decision | DeciderState]:
    """Yield the decisions for a variant, and then the states of its deciders.

    ``observing`` has the index of the variant, and the variant.
    """
    number, variant = observing
    observed = observed_streams(variant)
    try:
        yield from decisions_of(number, variant, _events(histories, observed))
    except EventFileError:
        return  # the first round reads the file again and reports the error


def _events(histories: Mapping[str, History], observed: Iterable[str]) -> Iterator[tuple[str, EventBatch]]:
    for stream, history in histories.items():
        if stream in observed:
            for batch in in_order(_portions(stream, history), is_ordered=history.is_ordered):
                yield stream, batch


def _portions(stream: str, history: History) -> Iterator[Portion]:
    portions = _read(stream, history)
    return portions if history.is_ordered else iter(sorted(portions, key=attrgetter("first_us")))


def _read(stream: str, history: History) -> Iterator[Portion]:
    done = 0
    for part in parts_of({stream: history}, 1):
        before = done
        for batch in batches_of(history, part, before):
            yield Portion(first_us=int(batch.time_us.min()), place=(part.file, 0, done), events=batch)
            done += len(batch)
