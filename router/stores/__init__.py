"""Persistence: one file per part of the store, chosen by URL in `router.stores.open`."""
