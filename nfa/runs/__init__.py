"""The run engine, for patterns that the shared-node engine cannot run. It has one run per partial match."""
