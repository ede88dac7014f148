"""Errors about members of a project's documents name the valid values."""

import pytest

from service.errors import ProjectRefused
from service.projects import read_project


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("foo: bar", "x.yaml:1: a document has kind and name; it has no kind and no name"),
        ("kind: pattern\nname: 3", "x.yaml:1: name must be a text that is not empty"),
        (
            "kind: pattern\nname: a\nseverity: hgh",
            'x.yaml:3: severity: one of low, medium, high, critical (did you mean high?); got "hgh"',
        ),
        (
            "kind: pattern\nname: a\nincident: {by: customer, close_after: 2}",
            'x.yaml:3: incident.by: a list, such as [a, b]; got "customer"',
        ),
        (
            "kind: pattern\nname: a\nincident: {by: customer, close_after: 2}",
            "x.yaml:3: incident.close_after: a text, such as 2 h; got 2",
        ),
        (
            "kind: aggregate\nname: a\nvalues: {n: quantile(amount, 95)}",
            "x.yaml:3: values.95): has no value; commas in braces separate members, so put a value with commas in",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_the_valid_ones(tmp_path, text, error):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(ProjectRefused) as refused:
        read_project(tmp_path)
    assert error in refused.value.message.replace(f"{tmp_path}/", "")
