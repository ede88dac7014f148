"""``forestall test --update`` changes the expectations that were confirmed, and nothing else."""

from pathlib import Path

import pytest
import typer

PATTERN = """{kind: stream, name: s}
---
{kind: pattern, name: p, stream: s, text: 'PATTERN p EVENT SEQ(A a, B b)'}
"""
LONG = "".join(f"    - p a=A{second} b=B9\n" for second in range(1, 7))
TESTS = f"""# first
kind: test
name: one
events: A1 B2
expect:
  alerts:
{LONG}
# second
---
# two has its comment
kind: test
name: two
expect:
  alerts: []
# of the events
events: A3 B4
---
kind: test
name: three
events: A5 B6
expect:
  alerts:
    - p a=A5 b=B6
# end
"""
UPDATED = TESTS.replace(LONG, "  - p a=A1 b=B2\n").replace("alerts: []", "alerts:\n  - p a=A3 b=B4")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rules.yaml").write_text(PATTERN)
    return tmp_path


@pytest.fixture
def answers(monkeypatch):
    """The answers to the questions, in order; then the user interrupts the command."""
    given: list[bool] = []

    def answer(*_: object, **__: object) -> bool:
        if not given:
            raise typer.Abort
        return given.pop(0)

    monkeypatch.setattr("typer.confirm", answer)
    return given


def test_tests_of_one_file_are_updated_together(folder, call, answers):
    path = folder / "a.yaml"
    path.write_text(TESTS)
    answers += [True, True]
    status, _, err = call("test", str(folder), "--update")
    assert (status, err.count("a.yaml is updated")) == (1, 1)
    assert path.read_text() == UPDATED
    assert call("test", str(folder))[0] == 0


def test_a_test_that_grows_leaves_the_next_one_whole(folder, call, answers):
    path = folder / "a.yaml"
    head = "---\nkind: test\nname: t{}\nevents: A1 A2 B3\nexpect:\n"
    path.write_text("".join(f"{head.format(n)}  alerts: []\n" for n in range(3)))
    answers += [True, False, True]
    assert call("test", str(folder), "--update")[0] == 1
    found = "  alerts:\n  - p a=A1 b=B3\n  - p a=A2 b=B3\n"
    expected = [found, "  alerts: []\n", found]
    assert path.read_text() == "".join(head.format(n) + lines for n, lines in enumerate(expected))


def test_comments_around_an_expectation_stay(folder, call, answers):
    path = folder / "a.yaml"
    text = "kind: test\nname: t\nexpect:\n  alerts: []\n\n# of the events\n\nevents: A1 B2\n# end\n...\n"
    path.write_text(text)
    answers += [True]
    call("test", str(folder), "--update")
    assert path.read_text() == text.replace("alerts: []", "alerts:\n  - p a=A1 b=B2")


def test_an_interrupted_update_writes_nothing(folder, call, answers):
    path = folder / "a.yaml"
    path.write_text(TESTS)
    answers += [True]
    assert call("test", str(folder), "--update")[0] == 1
    assert path.read_text() == TESTS


def test_a_file_that_cannot_be_replaced_stays_as_it_is(folder, call, answers, monkeypatch):
    path = folder / "a.yaml"
    path.write_text(TESTS)
    answers += [True, True]

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", refuse)
        status, _, err = call("test", str(folder), "--update")
    assert (status, "a.yaml cannot be written: Permission denied" in " ".join(err.split())) == (2, True), err
    assert path.read_text() == TESTS
    assert sorted(file.name for file in folder.iterdir()) == ["a.yaml", "rules.yaml"]


def test_a_replaced_file_keeps_its_permissions_and_its_link(folder, call, answers):
    target = folder / ".kept" / "tests.yaml"
    target.parent.mkdir()
    target.write_text(TESTS)
    target.chmod(0o640)
    (folder / "a.yaml").symlink_to(target)
    answers += [True, True]
    call("test", str(folder), "--update")
    assert (folder / "a.yaml").is_symlink()
    assert (target.read_text(), target.stat().st_mode & 0o777) == (UPDATED, 0o640)


@pytest.mark.parametrize(
    "document",
    [
        "{kind: test, name: flow, events: A1 B2, expect: {alerts: []}}\n",
        "{\nkind: test,\nname: flow,\nexpect: {alerts: []},\nevents: A1 B2\n}\n",
    ],
)
def test_a_test_in_another_form_is_refused_and_others_are_updated(folder, call, answers, document):
    path = folder / "a.yaml"
    path.write_text(f"{TESTS}---\n{document}")
    answers += [True, True, True]
    status, _, err = call("test", str(folder), "--update")
    assert (status, "only a document with each member on lines of its own" in " ".join(err.split())) == (2, True), err
    assert path.read_text() == f"{UPDATED}---\n{document}"


def test_a_file_that_was_edited_meanwhile_is_refused(folder, call, monkeypatch):
    path = folder / "a.yaml"
    path.write_text(TESTS)

    def edit(*_: object, **__: object) -> bool:
        path.write_text(f"# edited\n{TESTS}")
        return True

    monkeypatch.setattr("typer.confirm", edit)
    status, _, err = call("test", str(folder), "--update")
    assert (status, "the document has changed since the tests were read" in " ".join(err.split())) == (2, True), err
    assert path.read_text() == f"# edited\n{TESTS}"
