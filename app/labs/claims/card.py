"""A statement with its measurement, its rule and its verdict."""

from typing import Any

from app.parts.views import Part, mounted
from viz.figure import wordings


class Card(Part):
    """A statement and who says so; after its measurement also the verdict and what explains it.

    Its value is what :func:`app.labs.claims.answers.card` gives; it has no events.

    Example::

        card = Card(answers.card(CLAIMS["electra-fifteen"], None, None, False))
    """

    def __init__(self, value: dict[str, Any] | None = None, **more: Any) -> None:
        parts = mounted("claim-card", module="labs/claims/card", main=True)
        super().__init__(value, **{**parts, **more})

    def postprocess(self, value: Any) -> Any:
        """With the texts that the page translates."""
        return {**value, "words": wordings(value)} if isinstance(value, dict) else value
