"""``forestall generate`` with models and noise."""

from pathlib import Path

import orjson
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"


def events_of(path: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("name", ["order.yaml", "order.pnml"])
def test_a_model_is_played(call, tmp_path: Path, name: str) -> None:
    status, _, err = call("generate", "--workflow", str(EXAMPLES / name), "--traces", "30", "--output", "a.jsonl")
    assert (status, err) == (0, "")
    events = events_of(tmp_path / "a.jsonl")
    assert {event["key"] for event in events} == {f"trace-{number}" for number in range(1, 31)}
    assert {"ReceiveOrder", "GenerateQuote", "FinishOrder"} <= {event["type"] for event in events}
    call("generate", "--workflow", str(EXAMPLES / name), "--traces", "30", "--output", "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_the_order_example_is_like_the_built_in_workload(call, tmp_path: Path) -> None:
    call("generate", "--workflow", str(EXAMPLES / "order.yaml"), "--traces", "300", "--output", "a.jsonl")
    call("generate", "--orders", "300", "--output", "b.jsonl")
    ours, built_in = (events_of(tmp_path / name) for name in ("a.jsonl", "b.jsonl"))
    shown = {event["type"]: set(event["data"]) for event in ours}  # type: ignore[call-overload]
    assert shown == {event["type"]: set(event["data"]) for event in built_in}  # type: ignore[call-overload]
    assert len(ours) == pytest.approx(len(built_in), rel=0.1)


def test_a_mapping_renames_and_silences(call, tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("A: Alpha\nB: null\n")
    (tmp_path / "model.yaml").write_text("tree: {sequence: [A, B, C]}")
    call("generate", "--workflow", "model.yaml", "--map", "map.yaml", "--traces", "2", "--output", "a.jsonl")
    assert {event["type"] for event in events_of(tmp_path / "a.jsonl")} == {"Alpha", "C"}


def test_noise_is_counted(call, tmp_path: Path) -> None:
    options = ("--missing", "0.1", "--swapped", "0.1", "--duplicated", "0.1", "--late", "0.1", "--lateness", "30 s")
    status, _, err = call("generate", "--orders", "50", *options, "--output", "a.jsonl")
    clean, _, _ = call("generate", "--orders", "50", "--output", "b.jsonl")
    assert (status, clean) == (0, 0)
    words = err.removeprefix("noise: ").strip().split(", ")
    counts = {kind: int(count) for count, kind in (word.split() for word in words)}
    assert list(counts) == ["missing", "swapped", "duplicated", "late"]
    assert all(count > 20 for count in counts.values())
    noisy, plain = (len(events_of(tmp_path / name)) for name in ("a.jsonl", "b.jsonl"))
    assert noisy == plain - counts["missing"] + counts["duplicated"]


def test_durations_and_the_interval_set_the_pace(call, tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text("duration: 1 h\ntree: {sequence: [A, B]}")
    call("generate", "--workflow", "model.yaml", "--traces", "5", "--interval", "1 d", "--output", "a.jsonl")
    times = [str(event["time"]) for event in events_of(tmp_path / "a.jsonl")]
    assert times == sorted(times)
    assert times[0][:10] < times[-1][:10]


@pytest.mark.parametrize(
    ("text", "element", "message"),
    [
        ("tree: {xor: A}", "tree.xor (line 1)", "the operator takes a list"),
        ("<pnml/>", "", "the file has no <net>"),
        ("<html/>", "", "which is not a known form of model"),
    ],
)
def test_a_refused_model_is_said_in_words(call, tmp_path: Path, text: str, element: str, message: str) -> None:
    (tmp_path / "model").write_text(text)
    status, out, err = call("generate", "--workflow", "model", "--output", "a.jsonl")
    assert (status, out) == (2, "")
    assert err.startswith(f"error: model: {element}")
    assert message in err
    assert not (tmp_path / "a.jsonl").exists()


def test_an_odd_duration_is_refused(call) -> None:
    status, _, err = call("generate", "--orders", "1", "--lateness", "5 moons")
    assert status == 2
    assert "'5 moons' is not a duration" in err
