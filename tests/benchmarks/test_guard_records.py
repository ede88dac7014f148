"""The verdict of the performance guard on made-up measurements, and its file of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.guard.__main__ import HISTORY
from benchmarks.guard.records import (
    Measured,
    Ratio,
    Record,
    RecordRefused,
    WantedChange,
    append,
    best,
    compare,
    history,
    loss,
    spreads,
    typical,
)

MACHINE = {"cores": "2", "memory_gib": "24", "python": "3.11.7"}


def measured(*, matches: int = 141, speed: float = 0.5, size: float = 100.0) -> Measured:
    return Measured(
        counts={"matches": matches},
        ratios={"speed": Ratio(speed, more_is_better=True), "bytes": Ratio(size, more_is_better=False)},
    )


def record(version: str = "1.0.0", **options: float) -> Record:
    return Record(
        version=version,
        date="2026-01-31",
        commit="abc1234",
        machine=MACHINE,
        measured=measured(**options),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("ratio", "now", "lost"),
    [
        (Ratio(0.5, True), 0.5, 0.0),
        (Ratio(0.5, True), 0.4, 0.2),
        (Ratio(0.5, True), 1.0, -1.0),
        (Ratio(100.0, False), 125.0, 0.2),
        (Ratio(100.0, False), 50.0, -1.0),
    ],
)
def test_a_loss_is_a_share_of_what_was_better(ratio: Ratio, now: float, lost: float) -> None:
    assert loss(ratio, ratio._replace(value=now)) == pytest.approx(lost)


def test_the_same_again_is_good() -> None:
    verdict = compare(record(), measured(), MACHINE)
    assert verdict.is_good
    assert verdict.notes == ()


@pytest.mark.parametrize("options", [{"speed": 0.41}, {"size": 124.0}, {"speed": 5.0, "size": 1.0}])
def test_less_than_a_fifth_may_go(options: dict[str, float]) -> None:
    assert compare(record(), measured(**options)).is_good  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"speed": 0.4}, "speed: 0.40 after 0.50 in 1.0.0, 20% lost (more is better)"),
        ({"size": 130.0}, "bytes: 130.00 after 100.00 in 1.0.0, 23% lost (less is better)"),
    ],
)
def test_a_fifth_is_lost(options: dict[str, float], said: str) -> None:
    verdict = compare(record(), measured(**options))  # type: ignore[arg-type]
    assert not verdict.is_good
    assert verdict.lost == (said,)


@pytest.mark.parametrize("matches", [140, 142])
def test_any_other_count_is_told(matches: int) -> None:
    verdict = compare(record(), measured(matches=matches))
    assert not verdict.is_good
    assert verdict.changed == (f"matches: {matches} instead of 141 as in 1.0.0",)


def test_what_is_not_measured_any_more_is_lost() -> None:
    verdict = compare(record(), Measured(counts={}, ratios={"bytes": Ratio(100.0, more_is_better=False)}))
    assert verdict.changed == ("matches: nothing instead of 141 as in 1.0.0",)
    assert verdict.lost == ("speed: 0.50 in 1.0.0, and not measured any more",)


def test_what_is_new_and_another_machine_are_only_noted() -> None:
    now = Measured(
        counts={"matches": 141, "ended": 3}, ratios={**measured().ratios, "fresh": Ratio(1.0, more_is_better=True)}
    )
    verdict = compare(record(), now, MACHINE | {"cores": "8"})
    assert verdict.is_good
    assert [note.split(":")[0] for note in verdict.notes] == [
        "1.0.0 was measured on another machine",
        "ended",
        "fresh",
    ]


def test_the_best_of_two_runs_counts() -> None:
    both = best([measured(speed=0.3, size=90.0), measured(speed=0.5, size=110.0)])
    assert both == measured(speed=0.5, size=90.0)


def test_a_release_is_recorded_as_it_usually_is() -> None:
    runs = [measured(speed=0.3, size=90.0), measured(speed=0.9, size=110.0), measured(speed=0.5, size=100.0)]
    assert typical(runs) == measured(speed=0.5, size=100.0)


@pytest.mark.parametrize("choose", [best, typical])
def test_runs_that_differ_in_a_count_are_refused(choose: Callable[[Sequence[Measured]], Measured]) -> None:
    with pytest.raises(RecordRefused, match="counts differ"):
        choose([measured(matches=1), measured(matches=2)])


def test_how_far_apart_runs_were() -> None:
    assert spreads([measured(speed=0.4), measured(speed=0.5)]) == pytest.approx({"speed": 0.25, "bytes": 0.0})


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert history(path) == []
    records = [record("1.0.0"), record("1.1.0", speed=0.6)]
    for one in records:
        append(path, one)
    assert history(path) == records


def test_the_newest_version_is_recorded_again(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    for one in (record("1.0.0"), record("1.1.0"), record("1.1.0", speed=0.7)):
        append(path, one)
    assert history(path) == [record("1.0.0"), record("1.1.0", speed=0.7)]


def test_an_older_version_is_not_recorded_again(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    append(path, record("1.0.0"))
    append(path, record("1.1.0"))
    with pytest.raises(RecordRefused, match=r"1\.0\.0 is in history\.jsonl already"):
        append(path, record("1.0.0"))


@pytest.mark.parametrize("line", ["no JSON", "{}", '{"counts": 1, "ratios": {}, "machine": {}}', "[]"])
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "history.jsonl"
    append(path, record())
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(RecordRefused, match=r"history\.jsonl, line 2: no record"):
        history(path)


def test_the_history_can_be_read_and_its_versions_differ() -> None:
    versions = [one.version for one in history(HISTORY)]
    assert versions
    assert len(set(versions)) == len(versions)


def test_a_count_that_changed_on_purpose_must_have_its_new_value() -> None:
    wanted = {"matches": WantedChange(since="1.0.0", count=140, reason="ties are ordered")}
    verdict = compare(record(), measured(matches=140), wanted=wanted)
    assert verdict.is_good
    assert verdict.notes == ("matches: 140 instead of 141 as in 1.0.0, because ties are ordered",)
    assert compare(record(), measured(matches=141), wanted=wanted).changed == ("matches: 141 instead of 140",)
    assert not compare(record("1.1.0"), measured(matches=140), wanted=wanted).is_good
