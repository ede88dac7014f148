"""What is registered, in Redis: streams, patterns, constraint sets, event types, workflows, keys; and its changes."""
