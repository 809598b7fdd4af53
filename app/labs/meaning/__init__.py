"""One word in several sentences: its path through the layers and its neighbours."""
