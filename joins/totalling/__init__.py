"""Totals of the events of a key, for joins that emit one event for each finished key."""

from joins.totalling.key_totals import KeyTotals
