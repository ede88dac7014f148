"""Measures how far an input's keys are out of order over all shards, and finishes keys accordingly."""
