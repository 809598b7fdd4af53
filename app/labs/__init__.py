"""One folder for each lab of the page: its layout, its answers, its words and its scripts."""
