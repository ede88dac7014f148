"""Kernels over all events of a workload. They generate the workload, and replay which pattern states it occupies."""
