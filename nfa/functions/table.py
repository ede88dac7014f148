"""The table of all functions, by name."""

from __future__ import annotations

from collections.abc import Mapping

from nfa.functions import lookups, texts
from nfa.functions.function import Function

FUNCTIONS: Mapping[str, Function] = {one.name: one for one in (*texts.FUNCTIONS, *lookups.FUNCTIONS)}
