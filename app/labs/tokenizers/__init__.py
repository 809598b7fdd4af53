"""One line cut by several vocabularies."""
