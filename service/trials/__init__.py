"""Patterns run on existing events: the newest events of the log, and the events of one transaction."""
