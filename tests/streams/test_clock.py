"""The machine's clock as a clock."""

import time

from streams import Clock, SystemClock


def test_the_system_clock_tells_microseconds_since_1970() -> None:
    clock: Clock = SystemClock()
    before_us = time.time_ns() // 1_000
    assert before_us <= clock.now_us() <= time.time_ns() // 1_000
