"""Test helpers: patterns are registered by their text."""

from __future__ import annotations

from typing import Any

from service import PatternReport, Registration, pattern_draft

_OPTIONS = ("is_guarded", "start", "severity")


def register_pattern(registration: Registration, stream: str, text: str, **members: Any) -> PatternReport:
    """Register a pattern by its text, as a client does, with further members of its document."""
    options = {name: value for name, value in members.items() if name in _OPTIONS}
    quiet = {name: value for name, value in members.items() if name not in _OPTIONS}
    draft = pattern_draft(name="", text=text, quiet=quiet, **options)
    return registration.register(stream, registration.read_pattern(text, None), draft)
