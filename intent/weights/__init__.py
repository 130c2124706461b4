"""The bundled encoder, as package data: see PROVENANCE.md."""
