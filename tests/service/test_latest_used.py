from service.latest_used import LatestUsed


def test_what_was_asked_for_last_is_kept():
    computed: list[str] = []

    def value_of(key):
        def compute():
            computed.append(key)
            return key.upper()

        return values.get(key, compute)

    values: LatestUsed[str, str] = LatestUsed(2)
    assert [value_of(key) for key in "abacab"] == list("ABACAB")
    assert computed == ["a", "b", "c", "b"]
