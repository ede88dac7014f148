"""Brokers for the tests of this folder."""

import pytest

from tests.builders.feeds import mock_brokers


@pytest.fixture
def brokers():
    with mock_brokers() as brokers:
        yield brokers
