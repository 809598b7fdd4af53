"""Errors whose message is meant for people.

The command line prints them and the page shows them word for word, so every message names the
value that was refused, what is allowed, and what to do next. Any other exception is a defect of
ours and is never shown.
"""

MOST = 2_000
"""Characters of a message: what a file names itself by may be as long as the file."""


class InputError(ValueError):
    """A value from outside (text, file, name, configuration) that cannot be used.

    Args:
        message: for people; of one that is too long, beginning and end are kept.
    """

    def __init__(self, message: str = "") -> None:
        half = MOST // 2
        super().__init__(
            message if len(message) <= MOST else f"{message[:half]} … {message[-half:]}"
        )
