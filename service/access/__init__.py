"""API keys, and the authentication of callers by the tokens that they send."""
