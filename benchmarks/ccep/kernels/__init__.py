"""Kernels over every event of a workload: they write the workload, and replay which pattern states it occupies."""
