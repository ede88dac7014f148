"""Numbers, text and lists of different lengths by columns."""
