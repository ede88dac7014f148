"""Random patterns over random streams: ours against its reference always, and against engines that are installed."""

from random import Random

import pytest

from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.differences import DIFFERENCES
from benchmarks.peers.differential import case_of, random_patterns, random_rows
from benchmarks.peers.drivers.digests import digest_of
from benchmarks.peers.drivers.library_driver import answer, columns_of
from benchmarks.peers.environments import FOLDER, PEERS, Unavailable, is_set_up, java_tool
from benchmarks.peers.launching import Bench, Files
from benchmarks.peers.processes import finish
from benchmarks.peers.running import told_by
from benchmarks.peers.systems import SYSTEMS, Mode
from benchmarks.peers.workloads import Row, line_of
from nfa import parse_pattern
from streams import Event
from tests.references.patterns.outcome import reference_matches

TRIES = 5  # CORE ends by a signal in one of eight starts


def written(rows, folder):
    path = folder / "events.jsonl"
    path.write_bytes(b"".join(line_of(number, row) for number, row in enumerate(rows)))
    return path


def installed(peer):
    """Skips where a peer is not there; nothing is installed by a test."""
    if not is_set_up(PEERS[peer]):
        pytest.skip(f"{peer} is not installed, make bench-peers does it (issue #8)")
    try:
        java_tool("javac")
    except Unavailable as reason:
        pytest.skip(f"{reason} (issue #8)")


def found_by(name, case, path, folder, cases=()):
    """Number and digest of what an engine finds; its driver is made for some cases (default: this one)."""
    system = next(one for one in SYSTEMS if one.name == name)
    bench = Bench(cases or [case], FOLDER, tag=f"tests-{case.name}")  # tests of other cases may run beside
    assert system.peer is not None
    bench.prepare(system.peer)
    files = Files(events=path, warm=None, folder=folder / name)
    for _ in range(TRIES):
        done = finish(bench.launch(system, case, Mode(source="memory"), files), (), files.folder, 300)
        if done.status is None or done.status >= 0:
            break
    told = told_by(done, 300)
    return told["matches"], told["digest"]


@pytest.mark.parametrize("seed", range(10))
def test_ours_finds_what_its_reference_finds(seed, tmp_path):
    rng = Random(seed)
    patterns, rows = random_patterns(rng, 12, ("any", "next", "strict")), random_rows(rng, 60)
    case = case_of("random", patterns)
    events = [
        Event(id=f"e{place}", type=row.type, time_us=row.time_us, key=row.key, data={"value": row.value})
        for place, row in enumerate(rows)
    ]
    found = reference_matches([parse_pattern(text) for text in case.texts("forestall")], events)
    wanted = digest_of(
        (int(match.pattern[1:]), sorted(int(one[1:]) for ids in match.bindings.values() for one in ids))
        for match in found
    )
    assert wanted[0] > 0
    assert answer(case.texts("forestall"), columns_of(str(written(rows, tmp_path)))) == wanted


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "peer", "modes"),
    [("flink-cep", "flink", ("any", "next", "strict")), ("core", "core", ("any",))],
)
def test_a_peer_finds_what_ours_finds(name, peer, modes, tmp_path):
    installed(peer)
    rng = Random(2026)
    case = case_of("random", random_patterns(rng, 40, modes))
    path = written(random_rows(rng, 2_000), tmp_path)
    assert found_by(name, case, path, tmp_path) == answer(case.texts("forestall"), columns_of(str(path)))


@pytest.mark.slow
@pytest.mark.deep
def test_the_window_of_siddhi_includes_its_bound(tmp_path):
    installed("siddhi")
    difference = DIFFERENCES["window"]
    rows = [Row("T0", 0, "k", None), Row("T1", 1, "k", None), Row("T2", difference.events[1][1] * 1_000_000, "k", None)]
    case: Case = next(case for case in CASES if case.name == "W next")
    path = written(rows, tmp_path)
    assert answer(case.texts("forestall"), columns_of(str(path)))[0] == difference.ours
    assert found_by("siddhi", case, path, tmp_path)[0] == difference.theirs


@pytest.mark.slow
@pytest.mark.deep
def test_select_next_has_no_effect_in_core_with_partitions(tmp_path):
    installed("core")
    case = case_of("random", random_patterns(Random(1), 1, ("any",)))
    path = written(random_rows(Random(1), 300), tmp_path)
    words = dict(case.patterns[0])
    strict = Case(
        name="random", workload="random", query="differential", events=0,
        patterns=[{**words, "core": words["core"].replace("SELECT *", "SELECT NEXT *")}],
    )  # fmt: skip
    found = found_by("core", case, path, tmp_path)
    assert found[0] > 0
    assert found_by("core", strict, path, tmp_path) == found
