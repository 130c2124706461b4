"""Alembic's environment and the schema's revisions, applied by `router.stores.sqlite`."""
