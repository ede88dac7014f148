"""Patterns on events that are there already: files, the newest of the log, one transaction."""
