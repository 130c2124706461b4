"""A small company's agents, policy and labelled requests: what `serve` shows when no cards are given."""
