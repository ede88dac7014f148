"""Where the pipeline's rows go: alerts, timeouts, early endings, deviations and dead letters into their stores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from service.runtime import Stores
from streams import Clock

if TYPE_CHECKING:
    from pipeline import OutputRow  # brings Spark, which the API does without


class AlertSink:
    """Writes the rows of a micro-batch; writing them again changes nothing.

    Args:
        stores: Where they go.
        clock: Tells when the deliveries of new alerts are due: now.
    """

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._clock = clock

    def __call__(self, rows: Sequence[OutputRow], epoch_id: int) -> None:
        """Write the rows of micro-batch ``epoch_id``, or a part of them.

        Raises:
            StoreUnavailable: Redis does not answer; the same call may be made again.
        """
        if not rows:
            return
        by_kind: defaultdict[str, list[OutputRow]] = defaultdict(list)
        for row in rows:
            by_kind[row.kind].append(row)
        alerts = by_kind.pop("alert", [])
        if alerts:
            self._stores.alerts.append(alerts, self._stores.webhooks.all(), self._clock.now_us())
        recent = {
            "timeout": self._stores.timeouts,
            "ending": self._stores.endings,
            "deviation": self._stores.deviations,
            "dead-letter": self._stores.dead_letters,
        }
        for kind, listed in by_kind.items():
            recent[kind].append(listed, epoch_id)
