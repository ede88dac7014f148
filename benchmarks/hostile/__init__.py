"""A fuzzer of the whole service, with malformed and extreme models, constraint sets, patterns, schemas and events."""
