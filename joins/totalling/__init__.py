"""Totals of the events of a key, for joins that emit one event for each key once it is finished."""

from joins.totalling.key_totals import KeyTotals

__all__ = ["KeyTotals"]
