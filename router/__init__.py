"""From a reading and the cards to a decision: the service, its HTTP edge and its command line."""
