"""Does this text follow that one: next sentence and sentence order."""
