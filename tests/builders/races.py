"""Test helpers: another caller changes the registry at the worst moment of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from service.stores.record_books import RecordBook
from service.stores.registry.operators import Operators


def before_commit(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let another caller run ``other`` once, after the checks of a registration and before its commit."""
    apply = Operators.apply
    calls: list[object] = []

    def late(self: Any, *arguments: Any) -> Any:
        if not calls:
            calls.append(None)
            other()
        return apply(self, *arguments)

    monkeypatch.setattr(Operators, "apply", late)


def during_commit(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let another caller run ``other`` once, after the last read of a change and before the script commits it."""
    call_script = RecordBook._call_script
    calls: list[object] = []

    def late(self: Any, *arguments: Any, **more: Any) -> Any:
        if not calls:
            calls.append(None)
            other()
        return call_script(self, *arguments, **more)

    monkeypatch.setattr(RecordBook, "_call_script", late)
