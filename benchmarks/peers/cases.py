"""Cases of the comparison: each is a workload with a query, which every engine expresses in its own language.

The queries are in ``queries/<name>.toml``, with a table for each engine. The table has the ``text`` of the query, or in
``cannot`` the reason why the engine does not support it. ``differs`` names a known difference of meaning
(``differences.py``). In this case, ``matches`` is the engine's number of matches, by number of events.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from string import Template
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """A query in the language of one engine.

    Attributes:
        text: The template of one pattern.
        cannot: The reason why the engine cannot express the query, or empty if it can.
        types: The event types to which the input may be filtered beforehand. If empty, there is no filter.
        differs: A key of ``differences.DIFFERENCES``, if the answer may differ.
        matches: The number of matches in this case, by number of events.
        most: The maximum number of events that the engine can process in reasonable time.
    """

    text: str = ""
    cannot: str = ""
    types: tuple[str, ...] = ()
    differs: str = ""
    matches: Mapping[int, int] = field(default_factory=dict)
    most: int | None = None

    @property
    def lines(self) -> int:
        """The number of lines of one pattern."""
        return sum(1 for line in self.text.splitlines() if line.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload and a query.

    Attributes:
        name: The name of the case.
        workload: A key of ``WORKLOADS``.
        query: The file in ``queries``.
        events: The number of events of a full run.
        quick: The number of events of a quick run. If 0, quick runs skip the case.
        patterns: Values for the template, once for each pattern.
        expected: Agreed numbers of matches, by number of events.
        is_main: Whether the case is run in every mode of every engine.
        is_join: Whether the query is a join. Our text is then the document of a join.
        is_aggregate: Whether the query is an aggregate. Our text is then its document, and Siddhi's has no partition.
    """

    name: str
    workload: str
    query: str
    events: int
    quick: int = 0
    patterns: Sequence[Mapping[str, str]] = ({},)
    expected: Mapping[int, int] = field(default_factory=dict)
    is_main: bool = False
    is_join: bool = False
    is_aggregate: bool = False

    @property
    def title(self) -> str:
        """The title of the query."""
        return Template(str(_read(self.query)["title"])).safe_substitute(self.patterns[0])

    def wording(self, system: str) -> Wording:
        """Return the query in the language of an engine."""
        told: dict[str, Any] = dict(_read(self.query)[system])
        told["types"] = tuple(told.get("types", ()))
        told["matches"] = {int(events): count for events, count in told.get("matches", {}).items()}
        return Wording(**told)

    def texts(self, system: str) -> list[str]:
        """Return the patterns in the language of an engine, ready to run."""
        template = Template(self.wording(system).text)
        return [template.substitute(place=str(place), **words) for place, words in enumerate(self.patterns)]


@cache
def _read(query: str) -> dict[str, Any]:
    return tomllib.loads((HERE / "queries" / f"{query}.toml").read_text(encoding="utf-8"))


def _three_pages(count: int) -> list[dict[str, str]]:
    """Return three of the more frequent pages for each of ``count`` patterns, a different choice for each."""
    rng, found = Random(3), dict[tuple[int, ...], None]()
    while len(found) < count:
        found[tuple(rng.sample(range(20), 3))] = None
    return [dict(zip("abc", (f"Page{page}" for page in pages), strict=True)) for pages in found]


CASES: tuple[Case, ...] = (
    Case(
        name="W next",
        workload="w",
        query="w_next",
        events=1_000_000,
        quick=20_000,
        expected={20_000: 98, 200_000: 6_901, 1_000_000: 38_821},
        is_main=True,
    ),
    Case(
        name="W all",
        workload="w",
        query="w_all",
        events=1_000_000,
        quick=20_000,
        expected={20_000: 141, 200_000: 37_409, 1_000_000: 215_366},
        is_main=True,
    ),
    Case(name="orders 0 %", workload="orders-0", query="orders", events=200_000),
    Case(name="orders 50 %", workload="orders-50", query="orders", events=200_000, quick=20_000),
    Case(name="orders 90 %", workload="orders-90", query="orders", events=200_000),
    Case(name="stocks rising", workload="stocks", query="rising", events=200_000, quick=20_000),
    *(
        Case(
            name=f"stocks Kleene {seconds} s",
            workload="stocks",
            query="kleene",
            events=events,
            patterns=({"seconds": str(seconds), "us": str(seconds * 1_000_000)},),
        )
        for seconds, events in ((2, 100_000), (4, 100_000), (6, 50_000))
    ),
    Case(name="clicks, 1 pattern", workload="clicks", query="clicks", events=200_000, patterns=_three_pages(1)),
    Case(name="clicks, 10 patterns", workload="clicks", query="clicks", events=200_000, patterns=_three_pages(10)),
    Case(name="log", workload="log", query="log", events=65_533),
    Case(
        name="join",
        workload="payments",
        query="join",
        events=1_000_000,
        quick=20_000,
        expected={20_000: 11_944, 200_000: 115_780, 1_000_000: 573_449},
        is_main=True,
        is_join=True,
    ),
    Case(
        name="sliding",
        workload="sales",
        query="sliding",
        events=1_000_000,
        quick=20_000,
        is_main=True,
        is_aggregate=True,
    ),
)
