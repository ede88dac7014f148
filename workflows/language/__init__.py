"""Computes the languages of workflows: from blocks or markings to the minimal automaton."""
