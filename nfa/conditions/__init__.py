"""Conditions in three-valued logic: on an event's columns, between the steps of a run, and on a finished match."""
