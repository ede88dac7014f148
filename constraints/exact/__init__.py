"""Exact mode: the automaton of a workflow and what was written by hand beside it, decided together."""
