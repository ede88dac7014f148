"""Explanations, in words, of how an aggregate runs."""

from __future__ import annotations

from aggregates.document import AggregateBody
from aggregates.objects import EXACT
from streams import duration_text


def explain(body: AggregateBody, *, is_moved: bool) -> list[str]:
    """Describe an aggregate in sentences: its groups, window and values, and when events are emitted.

    ``is_moved`` is true if the events of a group are brought together in one shard.
    """
    sentences = [_groups(body, is_moved=is_moved), _kept(body), *_values(body), _emitted(body), *_of_condition(body)]
    if body.ask:
        sentences.append(
            f"Questions at any time: groups and filters by {', '.join(body.ask)}, over the events of the window or of "
            "a shorter one. Each shard has an index of these events, which follows the questions; answers describe it."
        )
    return sentences


def _groups(body: AggregateBody, *, is_moved: bool) -> str:
    groups = f"Groups: by {', '.join(body.by)}." if body.by else "Groups: all events are one group."
    if not is_moved:
        return (
            f"{groups} They contain the key of the stream {body.of}, so they are computed in the shard of the key, as "
            "soon as events come."
        )
    if body.rows_of is not None:
        return (
            f"Groups: the rows of {body.rows_of}. An event counts for each row that has its values of "
            f"{', '.join(body.attributes)} (empty: any value); an index finds these rows, whatever the number "
            "of others. Events are brought to the shards of their rows through the log; a row is evaluated when the "
            "time of the stream has passed its events."
        )
    return (
        f"{groups} Events are re-keyed through the log, because {why_moved(body)}. Shards do not merge partial values, "
        "as a late or retracted event would be missing in them. A group is evaluated when the time of the stream has "
        "passed its events."
    )


def why_moved(body: AggregateBody) -> str:
    """Return the reason why the events of a group have to be brought together in one shard."""
    if body.is_global:
        return "all(...) needs all events in one shard" if body.by else "one group needs all events in one shard"
    if "key" in body.by:  # a derived stream with questions
        return "the shards know one time of a derived stream, at which questions end, only through the log"
    return f"{', '.join(body.by)} does not contain the key of the stream {body.of}"


def _kept(body: AggregateBody) -> str:
    return (
        f"Window: {body.window.text}. A shard holds at most {body.most_rows:,} events in windows; beyond that the "
        "aggregate is suspended."
    )


def _values(body: AggregateBody) -> list[str]:
    names = ", ".join(f"{value.name}: {value.function}({value.argument})" for value in body.values)
    estimated = sorted({value.function for value in body.values} & {"distinct", "quantile"})
    beyond = f", but {' and '.join(estimated)} estimated above {EXACT:,} values" if estimated else ""
    return [f"Values, exact over the events of the window{beyond}: {names}."]


def _emitted(body: AggregateBody) -> str:
    event_type = body.event_type or "an event"
    if body.window.is_fixed:
        chosen = " for which the condition is true" if body.having is not None else ""
        return f"Emitted: {event_type} at the end of each window with events{chosen}."
    if body.having is not None:
        cleared = ", and another event when it becomes false" if body.clear else ""
        return f"Emitted: {event_type} when the condition of a group becomes true{cleared}."
    if body.window.ends:
        return f"Emitted: {event_type} at the end of each window."
    return f"Emitted: {event_type} after each event."


def _of_condition(body: AggregateBody) -> list[str]:
    sentences = []
    if body.having is not None and body.having.earlier:
        sentences.append(
            f"Earlier values are kept for {duration_text(body.having.longest_us)}, one for each change of a group; "
            "each counts as an event of a window."
        )
    if body.having is not None and body.having.overall:
        sentences.append(
            "Values over all groups are computed beside those of the groups, in the one shard that has all."
        )
    return sentences
