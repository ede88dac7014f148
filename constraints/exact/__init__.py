"""Exact mode: decides the automaton of a workflow together with hand-written constraints."""
