"""Live state: what agents can take now, kept in memory and fed by heartbeats, probes and outcomes."""
