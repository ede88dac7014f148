"""A fuzzer of the whole service: models, constraint sets, patterns, schemas and events that nobody would send."""
