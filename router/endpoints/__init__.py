"""The HTTP calls, one file for each kind of thing they are about."""
