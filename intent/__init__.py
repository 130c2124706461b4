"""From an utterance to a reading: normalize, embed, compare, say how sure it is."""
