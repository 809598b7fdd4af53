"""Popular statements about the families, and how each is measured."""
