"""Who calls and what they may do: the door, keys and scopes, the streams that a key reaches."""
