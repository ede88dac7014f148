"""Random patterns over random streams, in the languages of the engines that give them the same meaning.

All of these engines support a sequence of types within a window, and steps with a bound on a value. Flink also supports
a mode for each gap (``followedByAny``, ``followedBy`` and ``next`` are our ANY, NEXT and STRICT). If several events
have the same time, their order in the file counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from benchmarks.peers.cases import Case
from benchmarks.peers.workloads import START_MS, Row

GapMode: TypeAlias = Literal["any", "next", "strict"]
TYPES = ("A", "B", "C", "D")
_FLINK: Mapping[GapMode, str] = {"any": "followedByAny", "next": "followedBy", "strict": "next"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: its type, the mode of the gap before it, and the lower bound of its value, if any."""

    type: str
    mode: GapMode
    above: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequenced:
    """A random pattern: steps within a number of seconds."""

    steps: tuple[Step, ...]
    seconds: int

    @property
    def words(self) -> dict[str, str]:
        """The pattern for each engine, as ``queries/differential.toml`` expects it."""
        return {"forestall": self.ours(), "flink": self.flink(), "core": self.core()}

    def ours(self, name: str = "p$place") -> str:
        """Return the pattern in our language. By default, its name is a placeholder."""
        items = []
        for alias, step in zip("abcdef", self.steps, strict=False):
            mode = "" if alias == "a" else f"{step.mode.upper()} "
            bound = "" if step.above is None else f" [value > {step.above}]"
            items.append(f"{mode}{step.type} {alias}{bound}")
        return f"PATTERN {name} EVENT SEQ({', '.join(items)}) WITHIN {self.seconds} s\n"

    def flink(self) -> str:
        """Return the pattern as an expression of Flink's CEP library."""
        parts = []
        for alias, step in zip("abcdef", self.steps, strict=False):
            begin = 'Pattern.<Event>begin("a", noSkip())' if alias == "a" else f'.{_FLINK[step.mode]}("{alias}")'
            condition = f'type("{step.type}")' if step.above is None else f'typeAbove("{step.type}", {step.above})'
            parts.append(f"{begin}.where({condition})")
        return f"{''.join(parts)}.within(Duration.ofSeconds({self.seconds}))"

    def core(self) -> str:
        """Return the pattern as a query of CORE, whose only mode is ANY."""
        steps = list(zip("abcdef", self.steps, strict=False))
        formula = "; ".join(f"{step.type} as {alias}" for alias, step in steps)
        bounds = [f"{alias}[value > {step.above}.0]" for alias, step in steps if step.above is not None]
        filters = f" FILTER {' AND '.join(bounds)}" if bounds else ""
        window = f"PARTITION BY [key] WITHIN {self.seconds}000000 [moment]"
        return " ".join(["SELECT * FROM S", f"WHERE ({formula}){filters}", window])


def random_patterns(rng: Random, count: int, modes: Sequence[GapMode]) -> list[Sequenced]:
    """Return random patterns with different sequences of types, so that each match belongs to one pattern."""
    found: dict[tuple[str, ...], Sequenced] = {}
    while len(found) < count:
        types = tuple(rng.choice(TYPES) for _ in range(rng.randint(2, 4)))
        steps = tuple(Step(type=kind, mode=rng.choice(modes), above=rng.choice((None, None, 20, 60))) for kind in types)
        found[types] = Sequenced(steps=steps, seconds=rng.choice((2, 5, 9)))
    return list(found.values())


def random_rows(rng: Random, count: int) -> list[Row]:
    """Return random events of three keys, at most two seconds apart, some with equal times."""
    rows, moment = [], START_MS
    for _ in range(count):
        moment += rng.choice((0, 0, 500, 1_000, 2_000))
        rows.append(Row(rng.choice(TYPES), moment * 1_000, f"k{rng.randrange(3)}", float(rng.randrange(100))))
    return rows


def case_of(name: str, patterns: Sequence[Sequenced]) -> Case:
    """Return the patterns as a case."""
    words = [
        {key: text.replace("$place", str(place)) for key, text in one.words.items()}
        for place, one in enumerate(patterns)
    ]
    return Case(name=name, workload="random", query="differential", events=0, patterns=words)
