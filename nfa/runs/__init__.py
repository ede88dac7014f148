"""The run engine, for every pattern that the shared-node engine cannot run: one run per partial match."""
