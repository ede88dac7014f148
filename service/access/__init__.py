"""Access: API keys, and the callers that tokens identify."""
