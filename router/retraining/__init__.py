"""Retraining: new classifiers out of cards, accepted corrections and outcomes, and their exam."""
