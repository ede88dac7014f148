"""The page of functions has exactly the functions of the table, with their signatures, summaries and examples."""

from house import ROOT
from nfa import FUNCTIONS

PAGE = ROOT / "docs" / "functions.md"


def line_of(function):
    """The line of a function in a table of the page."""
    examples = "<br>".join(f"`{text}` → `{value}`" for text, value in function.examples)
    return f"| `{function.signature}` | {function.summary} | {examples} |"


def test_the_page_lists_the_functions_of_the_table():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if line.startswith("| `")]
    assert sorted(listed) == sorted(map(line_of, FUNCTIONS.values()))
