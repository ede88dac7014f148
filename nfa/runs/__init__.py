"""The run engine: the whole language, one run per partial match."""
