"""What users register, as use cases without HTTP: streams, patterns, constraint sets, workflows."""
