"""Registration of streams, patterns, constraint sets, workflows and other operators, as use cases without HTTP."""
