"""Registration of streams, patterns, constraint sets, workflows and other operators, independent of HTTP."""
