import pytest

from nfa import matcher_features, matching_exercise, parse_pattern
from nfa.exercises import MATCHER_FEATURES, matching
from streams.kernels.recording import recorded

PLAIN = parse_pattern("PATTERN p EVENT SEQ(A a, B b) WITHIN 9 s")
CHOOSY = parse_pattern("PATTERN q EVENT SEQ(A a, B b [v > a.v])")


def kernels(features):
    return {needed.name for needed in recorded(lambda: matching(features))}


@pytest.mark.parametrize(
    ("patterns", "options", "features"),
    [
        ([PLAIN], {}, {"shared"}),
        ([CHOOSY], {}, {"runs"}),
        ([PLAIN, CHOOSY], {"is_idling": True}, {"shared", "runs", "idle"}),
        ([PLAIN], {"ties": "simultaneous"}, {"runs"}),
        ([], {}, set()),
    ],
)
def test_patterns_and_options_say_what_a_matcher_needs(patterns, options, features):
    assert matcher_features(patterns, **options) == features


def test_features_are_named_in_one_order():
    assert matching_exercise({"runs", "shared"}) == "nfa.exercises:matching:shared,runs"
    assert matching_exercise(()) == "nfa.exercises:matching:"


@pytest.mark.parametrize(
    ("features", "matches"), [("shared", 6), ("runs", 9), ("shared,runs,idle,saved", 15), ("idle", 0)]
)
def test_every_exercise_finds_matches(features, matches):
    found = []
    recorded(lambda: found.append(matching(features)))
    assert found == [matches]


@pytest.mark.compiled
def test_features_need_kernels_of_their_own():
    everything = kernels(",".join(MATCHER_FEATURES))
    shared, runs = kernels("shared"), kernels("runs")
    assert shared | runs <= everything
    assert any(".runs.rows." in name for name in runs)
    assert not any(".runs.rows." in name or ".runs.dues." in name for name in shared)
