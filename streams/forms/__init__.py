"""The forms that events have outside: CloudEvents, plain JSON, columns of either; and how far a form may reach."""
