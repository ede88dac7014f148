"""``forestall joins``: joins of the running service."""

from __future__ import annotations

from service.cli.operators import operator_commands

joins = operator_commands("join", "joins")
