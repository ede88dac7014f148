"""Access control: authentication, API keys and scopes, and the streams that a key may access."""
