"""The shipped set: small models of all families, trained on the same text for the same tokens."""
