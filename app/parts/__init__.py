"""Parts that any lab may use: views, figures, files."""
