"""Scaling of engines: cases in which a single quantity varies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.peers.cases import CASES, Case

SYSTEMS_TOLD = ("library", "flink-cep", "siddhi", "core")
EVENTS = 200_000
_QUICK = 20_000
_NAMES = "abcdef"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A quantity that varies.

    Attributes:
        name: The name of the quantity, as a title.
        points: The case for each value.
    """

    name: str
    points: Mapping[int, Case]


def steps(count: int, seconds: int) -> dict[str, str]:
    """Return ``SEQ(T0, T1, ...)`` of one key within ``seconds``, in the language of each engine."""
    named = [(name, f"T{place}") for place, name in enumerate(_NAMES[:count])]
    first, last = named[0][0], named[-1][0]
    window = {last: f" and moment - {first}.moment < {seconds}000L"}
    flink = [f'.followedByAny("{name}").where(type("{kind}"))' for name, kind in named[1:]]
    return {
        "count": str(count),
        "seconds": str(seconds),
        "forestall": ", ".join(f"{kind} {name}" for name, kind in named),
        "flink": f'Pattern.<Event>begin("{first}", noSkip()).where(type("T0"))' + "".join(flink),
        "siddhi": " -> ".join(f"every {name}=S[type == '{kind}'{window.get(name, '')}]" for name, kind in named),
        "selected": ", ".join(f"{name}.number as {name}" for name, _ in named),
        "core": "; ".join(kind for _, kind in named),
    }


def _case(name: str, count: int, seconds: int, workload: str = "w") -> Case:
    words = (steps(count, seconds),)
    return Case(name=name, workload=workload, query="steps", events=EVENTS, quick=_QUICK, patterns=words)


def _clicks(count: int) -> Case:
    return next(case for case in CASES if case.workload == "clicks" and len(case.patterns) == count)


AXES: Sequence[Axis] = (
    Axis(name="patterns", points={count: _clicks(count) for count in (1, 10)}),
    Axis(name="keys", points={keys: _case(f"{keys:,} keys", 3, 60, f"w-{keys}") for keys in (1_000, 10_000, 100_000)}),
    Axis(name="window, s", points={seconds: _case(f"{seconds} s", 3, seconds) for seconds in (5, 20, 80)}),
    Axis(name="steps", points={count: _case(f"{count} steps", count, 60) for count in (2, 4, 6)}),
)
SCALING: Sequence[Case] = tuple(case for axis in AXES for case in axis.points.values())
