"""The registry in Redis: streams, patterns, constraint sets, event types, workflows, API keys; and their changes."""
