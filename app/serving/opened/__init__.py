"""Models of others: opened by visitors from the hub or from a folder (docs/hub.md)."""
