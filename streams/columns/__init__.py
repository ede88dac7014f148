"""Columns of numbers, of text, and of lists of different lengths."""
