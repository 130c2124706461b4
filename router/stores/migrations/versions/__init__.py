"""The schema's revisions, oldest first; a published one is never changed."""
