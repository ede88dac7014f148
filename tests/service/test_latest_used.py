from service.latest_used import LatestUsed


def test_the_keys_that_were_stored_last_are_kept():
    values: LatestUsed[str, int] = LatestUsed(2)
    for number, key in enumerate("abac"):
        values[key] = number
    assert values == {"a": 2, "c": 3}
