"""The meaning of questions: a list of events, filtered, grouped and aggregated one by one."""

from collections.abc import Iterable
from math import fsum

from aggregates.asking import HeldWindow, Question


class ListedEvents:
    """Events as a list of (time, attributes), in order of time."""

    def __init__(self, window: HeldWindow) -> None:
        self.window = window
        self.events: list[tuple[int, dict]] = []
        self.now_us: int | None = None

    def insert(self, events: Iterable[tuple[int, dict]]) -> None:
        events = list(events)
        self.events = sorted(self.events + events, key=lambda event: event[0])
        self.expire(max((time_us for time_us, _ in events), default=self.now_us))

    def expire(self, now_us: int | None) -> None:
        if now_us is None:
            return
        self.now_us = now_us if self.now_us is None else max(self.now_us, now_us)
        self.events = [event for event in self.events if self.now_us - event[0] < self.window.span_us]

    def ask(self, question: Question) -> list[dict]:
        end_us = max(one for one in (self.now_us, question.until_us, 0) if one is not None)
        window_us = self.window.span_us if question.window_us is None else question.window_us
        events = [event for event in self.events if end_us - event[0] < window_us]
        groups: dict[tuple, list[dict]] = {} if question.by else {(): []}
        for _, data in events:
            if all(_equal(data.get(name), value) for name, value in question.where.items()):
                group = tuple(_kept(data.get(name)) for name in question.by)
                groups.setdefault(group, []).append(data)
        rows = []
        for group in sorted(groups, key=lambda group: [_rank(part) for part in group]):
            row = {name: value for name, (_, value) in zip(question.by, group, strict=True)}
            for name, asked in question.values.items():
                row[name] = _value(
                    asked.function, [data.get(asked.attribute) for data in groups[group]], asked.attribute
                )
            rows.append(row)
        return rows


def _value(function, values, attribute):
    if attribute is None:
        return len(values)
    known = [value for value in values if value is not None]
    if function == "count":
        return len(known)
    if function == "distinct":
        return len(set(map(_kept, known)))
    known = [value for value in known if isinstance(value, int | float) and not isinstance(value, bool)]
    if not known:
        return None
    if function == "avg":
        return fsum(known) / len(known)
    if function == "sum":
        return fsum(known)
    return min(known) if function == "min" else max(known)


def _equal(one, other):
    return one is not None and other is not None and _kept(one) == _kept(other)


def _kept(value):
    return isinstance(value, bool), value  # true is not 1


def _rank(part):
    _, value = part
    kind = 0 if value is None else 1 if isinstance(value, bool) else 3 if isinstance(value, str) else 2
    return kind, value if value is not None else 0
