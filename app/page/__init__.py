"""What surrounds the labs: places, sentence line, language, theme, links."""
