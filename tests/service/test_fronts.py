from importlib import import_module

import pytest

LAZY = [
    "nfa",
    "pipeline",
    "pipeline.sources",
    "service",
    "service.stores",
    "shards",
    "streams",
    "streams.readers",
    "streams.tables",
]


@pytest.mark.parametrize("name", LAZY)
def test_a_lazy_front_has_every_name_that_it_exports(name: str) -> None:
    front = import_module(name)
    assert front.__all__ == sorted(front.__all__)
    assert dir(front) == front.__all__
    assert all(getattr(front, exported) is not None for exported in front.__all__)
    with pytest.raises(AttributeError):
        front.Missing  # noqa: B018
