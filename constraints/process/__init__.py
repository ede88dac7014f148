"""Exact mode: the language of a whole process, given by a workflow as one automaton beside constraints."""
