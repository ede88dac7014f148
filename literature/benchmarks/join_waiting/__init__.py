"""Unsynchronised joins: the experiments of their specification, on generated streams."""
