"""The tables as they are at the newest schema revision; `migrations/` leads there."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, Table, Text, text

REVISION = "0004"
"""The newest schema revision, kept here too so that opening a current store needs no Alembic."""

metadata = MetaData()

_SEQUENCE = BigInteger().with_variant(Integer(), "sqlite")

cards = Table(
    "cards",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("source", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

vectors = Table(
    "vectors",
    metadata,
    Column("encoder_id", Text, primary_key=True),
    Column("digest", Text, primary_key=True),
    Column("vector", LargeBinary, nullable=False),
    Column("unknown_share", Float, nullable=False),
)

keys = Table(
    "keys",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("secret_sha256", Text, nullable=False),
    Column("permissions", Text, nullable=False),
    Column("namespaces", Text),
    Column("callers", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)
Index(
    "keys_valid_name",
    keys.c.name,
    unique=True,
    sqlite_where=text("revoked_at IS NULL"),
    postgresql_where=text("revoked_at IS NULL"),
)

policies = Table(
    "policies",
    metadata,
    Column("generation", _SEQUENCE, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("decision_id", Text, primary_key=True),
    Column("trace_id", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("intent", Text),
    Column("agent_id", Text),
    Column("request", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("inputs", Text, nullable=False),
    Column("happened_at", BigInteger, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("sequence", _SEQUENCE, primary_key=True),
    Column("trace_id", Text, nullable=False),
    Column("span_id", Text, nullable=False),
    Column("parent_span_id", Text),
    Column("node_id", Text, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("decision", Text),
    Column("payload", Text, nullable=False),
    Column("cost_tokens", BigInteger, nullable=False),
    Column("latency_ms", Float, nullable=False),
    Column("happened_at", BigInteger, nullable=False),
    Column("caller", Text, nullable=False),
    Index("events_trace_id", "trace_id"),
    Index("events_happened_at", "happened_at"),
    # a sequence number is never given twice, not even after the newest rows were erased: readers page by it
    sqlite_autoincrement=True,
)

goals = Table(
    "goals",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("goal_hash", Text, nullable=False),
    Column("first_seen", BigInteger, nullable=False),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("sequence", _SEQUENCE, primary_key=True),
    Column("decision_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("idempotency_key", Text),
    Column("caller", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("charged", Text, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Index("outcomes_decision_id", "decision_id"),
    Index("outcomes_caller", "caller"),
    sqlite_autoincrement=True,
)

usage = Table(
    "usage",
    metadata,
    Column("hour", BigInteger, primary_key=True),
    Column("caller", Text, primary_key=True),
    Column("team", Text, primary_key=True),
    Column("namespace", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("n_decisions", BigInteger, nullable=False),
    Column("n_calls", BigInteger, nullable=False),
    Column("n_succeeded", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("cost_usd", Float, nullable=False),
    Column("n_latencies", BigInteger, nullable=False),
    Column("latency_ms", Float, nullable=False),
)

tickets = Table(
    "tickets",
    metadata,
    Column("ticket", Text, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("intent", Text, nullable=False),
    Column("decision_id", Text, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("n_claims", Integer, nullable=False),
    Column("claim_id", Text),
    Column("claimed_by", Text),
    Column("claimed_until", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("settled_at", BigInteger),
    Column("note", Text),
    Index("tickets_open", "state", "namespace", "created_at"),
)

repeats = Table(
    "repeats",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    Column("body_sha256", Text, nullable=False),
    Column("decision_id", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("repeats_created_at", "created_at"),
)

heartbeats = Table(
    "heartbeats",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("happened_at", BigInteger, nullable=False),
)

meta = Table(
    "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
