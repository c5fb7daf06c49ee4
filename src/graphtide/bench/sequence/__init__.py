"""Four kinds of event, one after the other, with one key, within ten seconds."""
