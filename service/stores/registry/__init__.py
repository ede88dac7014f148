"""The registry in Redis: streams, operators, constraint sets, event types, workflows, tables, projects and API keys."""
