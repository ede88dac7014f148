from service.intake.rates import TokenBuckets


class Timer:
    """A clock that advances only when a test sets it."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


def test_a_burst_is_granted_and_then_as_many_as_come_back():
    timer = Timer()
    buckets = TokenBuckets(2.0, 4, now=timer)
    assert [buckets.take("a").remaining for _ in range(4)] == [3, 2, 1, 0]
    refused = buckets.take("a")
    assert (refused.is_granted, refused.retry_after_s, refused.reset_s, refused.limit) == (False, 1, 2, 4)
    timer.now_s += 0.5
    assert [buckets.take("a").is_granted for _ in range(2)] == [True, False]


def test_a_refusal_costs_nothing():
    timer = Timer()
    buckets = TokenBuckets(0.1, 1, now=timer)
    assert buckets.take("a").is_granted
    assert [buckets.take("a").retry_after_s for _ in range(5)] == [10] * 5
    timer.now_s += 10
    assert buckets.take("a").is_granted


def test_a_bucket_never_overflows():
    timer = Timer()
    buckets = TokenBuckets(1.0, 3, now=timer)
    buckets.take("a")
    timer.now_s += 1_000_000
    assert buckets.take("a").remaining == 2


def test_names_have_buckets_of_their_own():
    buckets = TokenBuckets(1.0, 1, now=Timer())
    assert [buckets.take(name).is_granted for name in "aab"] == [True, False, True]


def test_looking_takes_nothing():
    buckets = TokenBuckets(1.0, 1, now=Timer())
    assert [buckets.look("a").is_granted for _ in range(3)] == [True, True, True]
    buckets.take("a")
    assert not buckets.look("a").is_granted


def test_memory_is_bounded():
    buckets = TokenBuckets(1.0, 1, now=Timer())
    for number in range(10_001):
        buckets.take(str(number))
    assert buckets.take("0").is_granted  # forgotten, the least recent of all
    assert not buckets.take("10000").is_granted
