"""The root of the error tree."""

from streams.errors import (
    BatchFormatError,
    ControlRecordError,
    DeclarationError,
    EventFileError,
    EventRejected,
    ForestallError,
    StreamError,
)


def test_details_travel_beside_the_message() -> None:
    error = EventRejected("no key", field="key")
    assert str(error) == error.message == "no key"
    assert error.details == {"field": "key"}


def test_codes_are_unique_and_all_belong_to_the_tree() -> None:
    branch = (StreamError, EventRejected, DeclarationError, EventFileError, ControlRecordError, BatchFormatError)
    assert all(issubclass(error, ForestallError) for error in branch)
    assert len({error.code for error in (ForestallError, *branch)}) == 7
    assert {error.fault for error in branch} == {"caller", "internal"}
