"""Suppressed matches of a run of one stream: decided over all matches in the order of time and id, as ADR 72 says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nfa import LaneOutput
from shards import LastAlerts, Suppression, match_ids


def quieted(
    lanes: Sequence[LaneOutput], suppressions: Mapping[str, Suppression], stream: str
) -> tuple[tuple[LaneOutput, ...], int]:
    """The matches that are not suppressed, and the number of suppressed ones.

    ``suppressions`` has the suppression of each pattern by its name.
    """
    last = {name: LastAlerts(one.lasts_us) for name, one in suppressions.items()}
    keeps = [np.ones(len(lane.matches), np.bool_) for lane in lanes]
    found = [(number, lane.columns_of_matches()) for number, lane in enumerate(lanes) if len(lane.matches)]
    places = []
    for number, columns in found:
        names = [columns.patterns[code].name for code in columns.pattern.tolist()]
        values = list(lanes[number].values_of_returns()) or [{}] * len(names)
        members = zip(columns.detected_us.tolist(), match_ids(columns, stream).to_pylist(), names, strict=True)
        for row, ((time_us, identity, name), key, returns) in enumerate(
            zip(members, columns.key.to_pylist(), values, strict=True)
        ):
            if (how := suppressions.get(name)) is not None:
                group = how.group_of({"key": key, "returns": returns})
                places.append((time_us, identity, name, group, number, row))
    for time_us, identity, name, group, number, row in sorted(places):
        keeps[number][row] = last[name].suppressor(group, time_us, identity) is None
    kept = tuple(lane.chosen(keep) for lane, keep in zip(lanes, keeps, strict=True))
    return kept, sum(int(np.count_nonzero(~keep)) for keep in keeps)
