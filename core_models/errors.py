"""Errors whose message is meant for people.

The command line prints them and the page shows them word for word, so every message names the
value that was refused, what is allowed, and what to do next. Any other exception is a defect of
ours and is never shown.
"""


class InputError(ValueError):
    """A value from outside (text, file, name, configuration) that cannot be used."""
