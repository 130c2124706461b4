"""Escalation: asking a language model which intent is meant, within limits, and trusting only an exact answer."""
