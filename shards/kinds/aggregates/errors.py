"""Errors of running aggregates.

OperatorSuspended
└── AggregateSuspended   an aggregate would hold more events than it may
"""

from __future__ import annotations

from shards.errors import OperatorSuspended


class AggregateSuspended(OperatorSuspended, code="aggregate-suspended"):
    """The windows of an aggregate would hold more events than allowed; the message names the aggregate."""
