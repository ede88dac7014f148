"""Which tests and benchmarks show what the specification of punctuation-aware joins asks for (its section 9)."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARK = "literature/benchmarks/join_tables/__main__.py::main"  # counts and ratios, in literature/RESULTS.md

# 14 is true of `literature`. A service passes on at once what is finished, so nothing waits there to be asked for.
SHOWN_BY = {
    1: ["tests/joins/test_windowed.py::test_the_join_equals_its_meaning_after_every_item"],
    2: ["tests/joins/test_windowed.py::test_purged_events_keep_their_places_in_a_window_of_a_number_of_events"],
    3: [
        "literature/tests/spilling/test_spilling_join.py::test_each_pair_is_found_once_and_none_after_its_key_was_propagated"
    ],
    4: [
        "tests/joins/test_mutations.py::test_a_mistake_in_a_windowed_join_is_seen",
        "literature/tests/test_mutations.py::test_a_join_that_spills_needs_purge_buffers",
    ],
    5: [
        "tests/joins/test_windowed.py::test_a_key_is_over_at_the_first_item_at_which_that_is_known",
        "tests/joins/test_windowed.py::test_an_event_at_the_border_of_a_window_is_out",
    ],
    6: [BENCHMARK],
    7: ["tests/joins/test_windowed.py::test_keys_that_are_over_are_remembered_up_to_a_number", BENCHMARK],
    8: [
        "tests/joins/costs/test_formulas.py::test_each_case_agrees_with_simulation",
        "tests/joins/costs/test_formulas.py::test_the_cases_meet_at_their_borders_and_lie_within_bounds",
    ],
    9: [BENCHMARK],
    10: [BENCHMARK],
    11: [
        "tests/joins/test_windowed.py::test_each_event_and_closing_costs_one_look_up",
        "literature/tests/test_baselines.py::test_a_probe_of_a_bucket_against_one_look_up",
    ],
    12: [
        "literature/tests/spilling/test_spilling_join.py::test_changes_while_it_runs_change_no_result",
        "literature/tests/spilling/test_registry.py::test_an_unusable_registry_is_refused_and_the_old_one_stays",
        "literature/tests/spilling/test_configuring.py::test_no_rule_changes_a_result_and_refused_ones_change_nothing",
        "literature/tests/spilling/test_configuring.py::test_a_decision_takes_effect_at_the_next_item",
        "literature/tests/spilling/test_configuring.py::test_a_registry_that_a_rule_makes_is_refused_with_a_reason",
    ],
    13: ["tests/system/test_auctions.py::test_an_auction_that_is_over_sends_one_webhook_with_its_count"],
    14: ["literature/tests/spilling/test_spilling_join.py::test_punctuations_are_propagated_when_the_mode_says_so"],
    15: [
        "literature/tests/punctuations/test_punctuated.py::test_odd_input_follows_its_policy_and_is_counted",
        "literature/tests/spilling/test_spilling_join.py::test_odd_input_is_counted",
    ],
    16: [
        "tests/contracts/test_operators.py::test_cuts_and_reloads_change_nothing",
        "literature/tests/spilling/test_hints.py::test_neither_cuts_nor_reloads_change_what_hints_lead_to",
    ],
    17: ["tests/contracts/test_operators.py::test_one_shard_or_several_say_the_same"],
    18: [
        "tests/service/cli/test_project_joins.py::test_what_cannot_be_joined_is_refused_with_its_place",
        "literature/tests/costs/test_estimate.py::test_the_estimate_is_within_15_percent_of_synchronous_streams",
    ],
    19: ["literature/tests/punctuations/test_punctuated.py::test_a_range_closes_keys_as_its_constants_would"],
    20: [
        "literature/tests/punctuations/test_generating.py::test_a_buffer_releases_what_the_reference_does_whatever_the_cut_and_the_reload",
        "literature/tests/spilling/test_approximate.py::test_the_target_is_reached_in_95_percent_of_runs_even_if_all_is_spent",
        "literature/tests/spilling/test_approximate.py::test_nothing_is_spurious_and_all_that_is_lost_is_counted",
        "literature/tests/spilling/test_hints.py::test_true_and_false_hints_change_no_result",
    ],
}


@pytest.mark.parametrize("item", range(1, 21))
def test_each_item_is_shown_by_something_that_exists(item):
    for place in SHOWN_BY[item]:
        path, name = place.split("::")
        assert f"def {name}(" in (ROOT / path).read_text()
