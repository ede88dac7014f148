"""Runs of patterns over existing events: the newest events of the log, or the events of one transaction."""
