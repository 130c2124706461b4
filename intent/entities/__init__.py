"""Entities of an utterance: amounts, dates, ids and the like, and the slots of a schema that they fill."""
