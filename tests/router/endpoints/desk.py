"""The card of an agent that helps."""

from __future__ import annotations

CARD = {
    "endpoint": "http://desk:1/call",
    "capabilities": [{"intent": "help", "examples": ["help me"], "input_schema": {}, "output_schema": {}}],
}
