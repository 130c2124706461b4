"""Contracts only: the pydantic models, ports and errors that every floor may import."""
